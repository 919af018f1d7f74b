/** Modules with many small files, uploaded to the orchestrator of a fleet. */
import { mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Fleet } from '../terminal/fleet.js';

const SIZE = 200;
const IN_MODULE = 1_000;

/** Uploads modules with so many files and returns their names. */
export async function uploadFiles({ api }: Fleet, count: number): Promise<readonly string[]> {
  const root = mkdtempSync(join(tmpdir(), 'files-'));
  const names: string[] = [];
  for (let first = 0; first < count; first += IN_MODULE) {
    const name = `files-${count}-${first / IN_MODULE}`;
    const directory = join(root, name);
    mkdirSync(directory);
    const resources = Array.from({ length: Math.min(IN_MODULE, count - first) }, (_, index) => ({
      resource: { 'file-unix': { path: join(directory, `file-${index}`), content: contentOf(first + index) } },
    }));
    const content = stringify({ name, supports: [{ platform: process.platform }], resources });
    await api.call('uploadModule', { body: { name, content } });
    names.push(name);
  }
  return names;
}

const contentOf = (index: number): string => `${`${index} `.repeat(SIZE).slice(0, SIZE - 1)}\n`;

/** Applies modules. An empty list removes everything that was applied. */
export async function applyModules({ api, nodeId }: Fleet, modules: readonly string[]): Promise<void> {
  const body = { modules: [...modules], allow_removals: 1_000_000 };
  const { status, error } = await api.call('applyAgent', { params: { node_id: nodeId }, body });
  if (status !== 'succeeded') throw new Error(`an apply ended ${status}: ${error?.message}`);
}
