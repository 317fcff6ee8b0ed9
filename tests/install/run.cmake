# Installs a build into an empty folder, builds a program that finds it there, and runs that:
#   cmake -DBUILD=DIR -DSOURCE=DIR -DCOMPILER=CXX -DFLAGS=... -P run.cmake
set(prefix ${BUILD}/install-test/prefix)
set(user ${BUILD}/install-test/user)
file(REMOVE_RECURSE ${BUILD}/install-test)

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "failed: ${ARGV}")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${user} -G Ninja -DCMAKE_BUILD_TYPE=Release
    -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_FLAGS=${FLAGS} -DCMAKE_PREFIX_PATH=${prefix}
    -DEXAMPLES=${SOURCE}/../../examples)
run(${CMAKE_COMMAND} --build ${user})
run(${user}/user_of_gspmd)
run(${user}/partition_in_c ${SOURCE}/../corpus/xf_small_fwd_att1_2x4.hlo)
run(${prefix}/bin/gspmd --version)
