/** Order of test files: those that take minutes begin first, so that no worker has one left while the others have nothing to do. */
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { ON_POSTGRES } from './postgres-suites.js';

/** Directories whose tests wait for processes and machines. */
const LONG = /\/test\/(faults|hosts|e2e)\//;

export class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((a, b) => rankOf(a) - rankOf(b));
  }
}

/** Files of a project stay together: a worker serves one project, and a change costs a new one. */
const rankOf = ({ moduleId, project }: TestSpecification): number => {
  if (project.name === ON_POSTGRES) return 1;
  return LONG.test(moduleId) ? 0 : 2;
};
