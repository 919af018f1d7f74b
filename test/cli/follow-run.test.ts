import { expect, it } from 'vitest';
import { followRun } from '../../src/cli/runs/follow-run.js';
import type { FaultCode } from '../../src/kernel/fault.js';
import { Fault } from '../../src/kernel/fault.js';
import { rejection } from '../support/database.js';

/** A stream that fails, with or without having named its operation. */
async function* failing(code: FaultCode, operation_id: string | null) {
  yield { event: 'started', operation_id } as const;
  throw new Fault(code, 'it failed');
}

const following = (code: FaultCode, operation: string | null) =>
  rejection(followRun(failing(code, operation), { resource: () => undefined }));

it.each([
  ['unreachable', 'the connection broke while operation 01A was running; it goes on without it'],
  ['unauthenticated', 'the session ended while operation 01A was running; it goes on without it'],
] as const)('tells how to go on watching an operation after %s', async (code, message) => {
  const hint = 'watch it with: orch ops watch 01A';
  expect(await following(code, '01A')).toMatchObject({ code, message, hint, data: { operation_id: '01A' } });
});

it.each([
  ['unreachable', null],
  ['cancelled', '01A'],
] as const)('leaves %s of operation %s as it is', async (code, operation) => {
  expect(await following(code, operation)).toMatchObject({ code, message: 'it failed' });
});
