/**
 * Counts the results of a test run, which `scripts/result-reporter.mjs` wrote:
 * node scripts/test-summary.mjs RESULTS RUNNER_STATUS [FAILED_CHECKS]
 * Prints the slowest suites, the test files that did not end, then one line of counts. Fails when anything failed, the runner was
 * cut off or crashed, or no test ran.
 */
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

/**
 * Returns the counts, the seconds that each suite took its workers and the processors (most first), and the files that were queued
 * or started but did not end. A file that failed outside its tests counts as one failure, and so does a runner that failed without
 * naming one.
 * @param {string} results path of the results, which may be missing or end in the middle of a line
 * @param {number} runnerStatus exit status of the runner
 */
export function summarise(results, runnerStatus) {
  const count = { passed: 0, failed: 0, skipped: 0 };
  const files = new Map();
  const seconds = new Map();
  for (const { file, event, error, state, seconds: took = 0, cpu = 0 } of read(results)) {
    if (event !== undefined) files.set(file, event);
    if (event === 'ended') {
      const before = seconds.get(suiteOf(file)) ?? { took: 0, cpu: 0 };
      seconds.set(suiteOf(file), { took: before.took + took, cpu: before.cpu + cpu });
    }
    if (event === 'ended' && error !== undefined) count.failed += 1;
    if (state === 'passed' || state === 'failed') count[state] += 1;
    else if (state === 'skipped') count.skipped += 1;
  }
  if (count.failed === 0 && runnerStatus !== 0) count.failed = 1;
  return {
    ...count,
    seconds: [...seconds].sort(([, a], [, b]) => b.took - a.took),
    unfinished: [...files].filter(([, event]) => event !== 'ended').map(([file]) => file),
  };
}

/** The directory below `test/` that a file is in, or the file itself, with its store. */
const suiteOf = (file) => file.replace(/^(test\/[^/ ]+)\S*/, '$1');

const inSeconds = (seconds) => `${seconds.toFixed(0).padStart(5)} s`;

function read(results) {
  let text = '';
  try {
    text = readFileSync(results, 'utf8');
  } catch {
    // The runner ended before its first test.
  }
  // A line that was cut off has no newline.
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [results = '', runnerStatus = '1', failedChecks = '0'] = process.argv.slice(2);
  const { passed, failed, skipped, seconds, unfinished } = summarise(results, Number(runnerStatus));
  const slow = seconds
    .filter(([, { took }]) => took >= 10)
    .map(([suite, { took, cpu }]) => `  ${inSeconds(took)} ${inSeconds(cpu)}  ${suite}`);
  const heading = 'time of the workers, and of the processors, of all that took ten seconds';
  if (slow.length > 0) console.log(`${heading}:\n${slow.join('\n')}`);
  const failures = failed + Number(failedChecks);
  if (unfinished.length > 0) {
    console.log(`${unfinished.length} test files did not end:\n${unfinished.map((file) => `  ${file}`).join('\n')}`);
  }
  if (passed + failures === 0) console.log('no test ran');
  console.log(`${passed} passed, ${failures} failed, ${skipped} skipped`);
  process.exitCode = passed === 0 || failures > 0 ? 1 : 0;
}
