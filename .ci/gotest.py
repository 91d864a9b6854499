#!/usr/bin/env python3
"""Reads the events of 'go test -json' and prints what people want of them: packages, failures, and the count.

Ends with 'N passed, N failed'. Skipped tests are named, since nothing here should be skipped. A package that does
not build, or fails outside of its tests, counts as one failure.
"""
import collections
import json
import sys


def main():
    output = collections.defaultdict(list)
    passed, failed, skipped = 0, 0, []
    broken = set()  # packages with a failed test or build, already counted
    for line in sys.stdin:
        try:
            event = json.loads(line)
        except ValueError:
            sys.stdout.write(line)
            continue
        action, package, test = event["Action"], event.get("Package") or event.get("ImportPath", ""), event.get("Test")
        key = (package, test)
        if action in ("output", "build-output"):
            output[key].append(event["Output"])
        elif action == "build-fail":
            print("FAIL build of %s\n%s" % (package, "".join(output.pop(key, []))))
        elif test and action in ("pass", "fail", "skip"):
            text = "".join(output.pop(key, []))
            if action == "pass":
                passed += 1
            elif action == "skip":
                skipped.append("%s %s" % key)
            else:
                failed += 1
                broken.add(package)
                print("FAIL %s %s\n%s" % (package, test, text))
        elif action in ("pass", "fail", "skip"):
            print("%-4s %s %.1f s" % ("ok" if action == "pass" else action, package, event.get("Elapsed") or 0), flush=True)
            if action == "fail" and package not in broken:
                failed += 1
                print("".join(output.pop(key, [])))
                # A test that never ended, in a panic or a time-out, has its stacks under its own name.
                for unended in [k for k in output if k[0] == package and k[1]]:
                    print("FAIL %s %s did not end\n%s" % (*unended, "".join(output.pop(unended))))
    for name in skipped:
        print("skipped: " + name)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
