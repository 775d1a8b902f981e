#!/usr/bin/env python3
"""Runs one test of the plan. run.py starts it as a separate process.

  one_test.py ORDER      a file of JSON: the catalogue, the test, the path of XSched, and the path for the outcome
"""
import json
import sys
import time
import traceback

import catalogue
from catalogue import Failed, Skipped
from machine import Machine
from testbed import TestBed


def outcome(test, bed, limit):
    """(status, why, the figures)."""
    bed.give(max(5.0, limit - 10))  # leaves time to end its programs within the limit
    try:
        test.function(bed)
    except Skipped as reason:
        return "skipped", str(reason)
    except Failed as reason:
        bed.problems.append(str(reason))
    except Exception as error:  # whatever a framework or a driver raises fails the test
        traceback.print_exc()
        bed.problems.append(f"{type(error).__name__}: {error}"[:1000])
    finally:
        bed.close_workers()
    return ("failed" if bed.problems else "passed"), "\n".join(bed.problems + bed.notes)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        order = json.load(file)
    test = catalogue.load(order["catalogue"]).tests[order["test"]]
    bed = TestBed(order["binaries"], order["seconds"], sys.stdout, Machine(**order["machine"]), order["quick"])
    begin = time.monotonic()
    status, notes = outcome(test, bed, order["limit"])
    result = {"status": status, "notes": notes, "metrics": bed.metrics, "criteria": bed.criteria, "plots": bed.plots,
              "latencies": bed.latencies, "seconds": time.monotonic() - begin}
    with open(order["result"], "w", encoding="utf-8") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main()
