/**
 * A reporter of vitest that writes each result to a file as soon as it is known, so that a run that is cut off still counts:
 * one JSON object a line, `{file, event: 'queued' | 'started' | 'ended', seconds?, cpu?, error?}` or `{file, test, state}`.
 * The path is in ORCH_TEST_RESULTS. `scripts/test-summary.mjs` reads the file.
 */
import { appendFileSync, writeFileSync } from 'node:fs';

/** A file runs once on each store, which the project names. */
const named = (file, project) => (project.name === '' ? file : `${file} (${project.name})`);
/** @param {import('vitest/node').TestModule} module */
const fileOf = (module) => named(module.relativeModuleId, module.project);

/** @implements {import('vitest/reporters').Reporter} */
export default class ResultReporter {
  path = process.env.ORCH_TEST_RESULTS ?? '';

  onInit() {
    if (this.path === '') throw new Error('ORCH_TEST_RESULTS is not set: it names the file of the results');
    writeFileSync(this.path, '');
  }

  /** @param {readonly import('vitest/node').TestSpecification[]} specifications */
  onTestRunStart(specifications) {
    for (const { project, moduleId } of specifications) {
      this.write({ file: named(moduleId.replace(`${project.config.root}/`, ''), project), event: 'queued' });
    }
  }

  /** @param {import('vitest/node').TestModule} module */
  onTestModuleStart(module) {
    this.write({ file: fileOf(module), event: 'started' });
  }

  /** @param {import('vitest/node').TestCase} test */
  onTestCaseResult(test) {
    this.write({ file: fileOf(test.module), test: test.fullName, state: test.result().state });
  }

  /** @param {import('vitest/node').TestModule} module */
  onTestModuleEnd(module) {
    const error = module.state() === 'failed' ? module.errors()[0]?.message : undefined;
    const { setupDuration, collectDuration, duration } = module.diagnostic();
    const seconds = (setupDuration + collectDuration + duration) / 1000;
    this.write({ file: fileOf(module), event: 'ended', seconds, cpu: module.meta().cpuSeconds, error });
  }

  write(line) {
    appendFileSync(this.path, `${JSON.stringify(line)}\n`);
  }
}
