#!/usr/bin/awk -f
# What of a test's output is shown as it comes: all but what libtest says of programs in which nothing failed.
/^(running [0-9]+ tests?|[.i]*( [0-9]+\/[0-9]+)?|test result: ok\. .*)$/ { next }
/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { next }
{ print; fflush() }
