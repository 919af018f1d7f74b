/**
 * Counts what a run of the tests came to, from the JSON report of vitest:
 * node scripts/test-summary.mjs REPORT RUNNER_STATUS [FAILED_CHECKS]
 * Prints one line, and fails when anything failed, the runner crashed or no test ran.
 */
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

/**
 * A test file that failed outside its tests counts as one failure, and so does a runner that failed without naming one.
 * @param {string} report path of the report, which is missing when the runner crashed
 * @param {number} runnerStatus exit status of the runner
 */
export function summarise(report, runnerStatus) {
  const { numPassedTests = 0, numPendingTests = 0, numTodoTests = 0, testResults = [] } = read(report);
  const failed = testResults.reduce((sum, file) => sum + failuresIn(file), 0);
  return {
    passed: numPassedTests,
    failed: failed === 0 && runnerStatus !== 0 ? 1 : failed,
    skipped: numPendingTests + numTodoTests,
  };
}

function failuresIn({ status, assertionResults }) {
  const failed = assertionResults.filter((test) => test.status === 'failed').length;
  return status === 'failed' ? Math.max(failed, 1) : failed;
}

function read(report) {
  try {
    return JSON.parse(readFileSync(report, 'utf8'));
  } catch {
    return {};
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [report = '', runnerStatus = '1', failedChecks = '0'] = process.argv.slice(2);
  const { passed, failed, skipped } = summarise(report, Number(runnerStatus));
  const failures = failed + Number(failedChecks);
  if (passed + failures === 0) console.log('no test ran');
  console.log(`${passed} passed, ${failures} failed, ${skipped} skipped`);
  process.exitCode = passed === 0 || failures > 0 ? 1 : 0;
}
