/** Orders test files: the slow ones start first, so that no worker still runs one while the others are idle. */
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { ON_POSTGRES } from './postgres-suites.js';

/** Slow tests, which start processes and machines. */
const LONG = /\/test\/(faults\/|hosts\/|e2e\/|benchmarks\.)/;

export class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((a, b) => rankOf(a) - rankOf(b));
  }
}

/** Keeps the files of a project together, because each change of project starts a new worker. */
const rankOf = ({ moduleId, project }: TestSpecification): number => {
  if (project.name === ON_POSTGRES) return 1;
  return LONG.test(moduleId) ? 0 : 2;
};
