/** The output of `orch doctor`; `test/e2e/doctor.test.ts` has its findings. */
import { expect, it, onTestFinished } from 'vitest';
import type { DoctorCheck } from '../../src/programs/doctor-check.js';
import { expectGolden, Home, noPrograms, runOrch, transcript } from '../support/cli.js';

const CHECKS: readonly DoctorCheck[] = [
  { name: 'node', state: 'ok', found: 'Node.js 24.1.0 (/usr/bin/node)', fix: null },
  { name: 'serve store', state: 'note', found: 'the next start checks it', fix: null },
  { name: 'agent disk', state: 'warning', found: '200 MiB are free', fix: 'free some space' },
  { name: 'agent settings', state: 'problem', found: 'not valid:\nline 1\nline 2', fix: 'correct it\nor remove it' },
];
const programs = { ...noPrograms, doctor: async () => CHECKS };

it('is a line for each check, with the fix below it', async () => {
  const home = new Home();
  onTestFinished(() => home.dispose());
  const env = { ...home.env, NO_COLOR: '1', ORCH_URL: 'https://127.0.0.1:1' };
  const ran = await runOrch(['doctor'], { env, programs });
  expect(ran.status).toBe(1);
  expectGolden('doctor', transcript(['doctor'], ran).replaceAll(home.path, '/home/ada'));
  expect((await runOrch(['doctor', '-o', 'name'], { env, programs })).stdout).toContain('agent settings\n');
});
