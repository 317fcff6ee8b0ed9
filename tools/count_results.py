#!/usr/bin/env python3
"""Counts test cases over the result files of one run and prints `N passed, N failed`.

    count_results.py DIR

DIR has ctest.xml, and for each ctest entry that runs many cases NAME.json (GoogleTest) or NAME.xml
(pytest). An entry without such a file counts as one case; an entry that failed although all of its
recorded cases passed (it crashed, or ran out of time) counts as one failure more.
"""

import json
import os
import sys
from collections import Counter
from xml.etree import ElementTree


def gtest_cases(path):
    with open(path) as file:
        suites = json.load(file)["testsuites"]
    for suite in suites:
        for case in suite["testsuite"]:
            if case["status"] == "NOTRUN":
                continue
            failed = "failures" in case
            skipped = case.get("result") == "SKIPPED"
            yield (
                f"{case['classname']}.{case['name']}",
                "failed" if failed else "skipped" if skipped else "passed",
            )


def junit_cases(path):
    for case in ElementTree.parse(path).iter("testcase"):
        kinds = {child.tag for child in case}
        bad = kinds & {"failure", "error"} or case.get("status") == "fail"
        skipped = "skipped" in kinds or case.get("status") in ("notrun", "disabled")
        yield (
            f"{case.get('classname')}.{case.get('name')}",
            "failed" if bad else "skipped" if skipped else "passed",
        )


def entry_cases(folder, name, outcome):
    """The cases behind one ctest entry."""
    cases = []
    for suffix, read in ((".json", gtest_cases), (".xml", junit_cases)):
        path = os.path.join(folder, name + suffix)
        if os.path.exists(path):
            cases = list(read(path))
    # A shard may have no case at all: that is not a case that passed.
    if outcome == "failed" and not any(o == "failed" for _, o in cases):
        cases.append((name, "failed"))
    elif not cases and not os.path.exists(os.path.join(folder, name + ".json")):
        cases.append((name, outcome))
    return cases


def main():
    folder = sys.argv[1]
    ctest = os.path.join(folder, "ctest.xml")
    if not os.path.exists(ctest):
        print("no test was run\n0 passed, 1 failed")
        return 1
    counts = Counter()
    for case in ElementTree.parse(ctest).iter("testcase"):
        outcome = {"run": "passed", "fail": "failed"}.get(case.get("status"), "skipped")
        for name, result in entry_cases(folder, case.get("name"), outcome):
            counts[result] += 1
            if result == "failed":
                print(f"FAILED {name}")
    skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    print(f"{counts['passed']} passed, {counts['failed']} failed{skipped}")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
