/** Eight everyday jobs as modules, by name: the measure of how much a user has to write. */
import { readdirSync, readFileSync } from 'node:fs';

const directory = new URL('../language/eight-jobs/', import.meta.url);
const ENDING = '.orch.yaml';

export const eightJobs: ReadonlyMap<string, string> = new Map(
  readdirSync(directory)
    .filter((name) => name.endsWith(ENDING))
    .map((name) => [name.slice(0, -ENDING.length), readFileSync(new URL(name, directory), 'utf8')]),
);
