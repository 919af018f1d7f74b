/** Syncs of directories that are shared by those who ask at the same time. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { DirectorySyncs } from '../../../daemon/terminal/recordings/recording-files.js';
import { temporaryDirectory } from '../../support/database.js';

it('those who ask while one runs share the next, and whoever asks later has another', async () => {
  const directory = temporaryDirectory();
  const syncs = new DirectorySyncs();
  const asked = Array.from({ length: 100 }, () => syncs.sync(directory));
  expect(new Set(asked).size).toBe(2);
  const elsewhere = syncs.sync(temporaryDirectory());
  expect(elsewhere).not.toBe(asked[1]);
  await asked[0];
  const later = syncs.sync(directory);
  expect(later).not.toBe(asked[0]);
  // The directories are removed when the test ends.
  await Promise.all([...asked, elsewhere, later]);
});

it('a directory that cannot be synced fails all who ask, and can be later', async () => {
  const directory = join(temporaryDirectory(), 'later');
  const syncs = new DirectorySyncs();
  const asked = await Promise.allSettled([1, 2, 3].map(() => syncs.sync(directory)));
  expect(asked.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  mkdirSync(directory);
  await syncs.sync(directory);
});
