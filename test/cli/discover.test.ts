/** The packets and the output of `orch discover`. */
import { expect, it } from 'vitest';
import { expectGolden, runOrch, transcript } from '../support/cli.js';
import { loggedIn, startFakeApi } from '../support/fake-api.js';

it('orch discover tells where packets went, and why none did', async () => {
  let body: unknown;
  const api = await startFakeApi({
    discover: (request) => {
      body = request.body;
      return { body: { sent: true, targets: ['10.0.0.255:4747', '[ff02::1%eth0]:4747'] } };
    },
  });
  const golden = async (name: string, argv: readonly string[], status: number) => {
    const ran = await runOrch(argv, { env: { ...loggedIn(api), NO_COLOR: '1' } });
    expect(ran.status).toBe(status);
    expectGolden(name, transcript(argv, ran));
  };
  await golden('discover', ['discover'], 0);
  expect(body).toEqual({ target: null });
  await golden('discover-names', ['discover', '--target', '10.0.0.7:4747', '-o', 'name'], 0);
  expect(body).toEqual({ target: '10.0.0.7:4747' });
  const detail = 'no discovery packet was sent: this machine has no network that agents could be on';
  api.answer({ discover: { problem: 'discovery_failed', detail } });
  await golden('discover-failed', ['discover'], 1);
  await api.stop();
  expect(api.violations).toEqual([]);
});
