/** A reporter of vitest that names every test that was skipped; its title, or its note, says why. */

/** @implements {import('vitest/reporters').Reporter} */
export default class SkippedReporter {
  /** @param {import('vitest/node').Vitest} vitest */
  onInit(vitest) {
    this.vitest = vitest;
  }

  /** @param {readonly import('vitest/node').TestModule[]} modules */
  onTestRunEnd(modules) {
    // Whoever asks for tests by name knows that there are others.
    if (this.vitest.getGlobalTestNamePattern() !== undefined) return;
    for (const module of modules) {
      const project = module.project.name === '' ? '' : ` (${module.project.name})`;
      for (const test of module.children.allTests('skipped')) {
        const { note } = test.result();
        const why = note === undefined ? '' : ` (${note})`;
        process.stderr.write(`skipped: ${module.relativeModuleId}${project} > ${test.fullName}${why}\n`);
      }
    }
  }
}
