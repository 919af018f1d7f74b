/** The requests and the output of the commands of maintenance windows. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type {
  CreateMaintenanceWindow,
  MaintenanceWindow,
  UpdateMaintenanceWindow,
} from '../../src/contract/maintenance-windows.js';
import { expectGolden, NOW, runOrch, transcript } from '../support/cli.js';
import { operators, ulid } from '../support/cli-world.js';
import { type FakeApi, loggedIn, type Request, startFakeApi } from '../support/fake-api.js';

const now = NOW / 1000;
const HOUR = 3600;

const window = (number: number, fields: Partial<MaintenanceWindow>): MaintenanceWindow => ({
  id: ulid(number),
  reason: 'new switch in rack 3',
  starts_at: now - HOUR,
  ends_at: now + HOUR,
  created_by: operators[0]?.operator_id ?? '',
  created_at: now - HOUR,
  kind: 'pause',
  selector: null,
  assignments: [],
  status: 'active',
  ...fields,
});

const active = window(2, {});
const scheduled = window(3, { starts_at: now + HOUR, ends_at: now + 5 * HOUR, status: 'scheduled', reason: 'kernel' });
const ended = window(1, { starts_at: now - 9 * HOUR, ends_at: now - 8 * HOUR, status: 'ended', reason: 'disk' });
const windows = [
  window(5, { starts_at: now + HOUR, status: 'scheduled', kind: 'permit', assignments: ['web'], reason: 'nights' }),
  scheduled,
  active,
  window(6, { selector: 'role=db', status: 'ended', starts_at: now - 9 * HOUR, ends_at: now - 8 * HOUR }),
  ended,
];

let api: FakeApi;
let shown = windows;
let sent: unknown;

beforeAll(async () => {
  api = await startFakeApi({
    listOperators: { body: operators },
    listMaintenanceWindows: { body: windows },
    getMaintenanceWindow: ({ params }) => {
      const found = shown.find(({ id }) => id === params.id);
      return found
        ? { body: found }
        : { problem: 'maintenance_window_not_found', detail: `there is no maintenance window ${params.id}` };
    },
    createMaintenanceWindow: ({ body }) => {
      sent = body;
      const given = body as CreateMaintenanceWindow;
      const status = given.starts_at > now ? 'scheduled' : 'active';
      const { kind, selector = null, assignments } = given;
      const scope = { kind: kind ?? 'pause', selector, assignments: assignments ?? [] };
      return { status: 201, body: window(4, { ...given, ...scope, status }) };
    },
    updateMaintenanceWindow: (request) => {
      sent = request.body;
      return { body: { ...active, ends_at: endOf(request), status: 'ended' } };
    },
    removeMaintenanceWindow: { status: 204, body: undefined },
  });
});
afterAll(async () => {
  await api.stop();
  expect(api.violations).toEqual([]);
});

const endOf = ({ body }: Request): number => (body as UpdateMaintenanceWindow).ends_at ?? 0;
const run = (argv: readonly string[]) => runOrch(argv, { env: { ...loggedIn(api), NO_COLOR: '1' } });

async function golden(name: string, argv: readonly string[], status = 0): Promise<void> {
  const ran = await run(argv);
  expect(ran.status).toBe(status);
  expectGolden(`maintenance-${name}`, transcript(argv, ran));
}

describe('orch maintenance', () => {
  it('lists and shows windows', async () => {
    await golden('list', ['maintenance']);
    await golden('show', ['maintenance', 'show', scheduled.id]);
    await golden('show-unknown', ['maintenance', 'show', ulid(9)], 1);
    const json = await run(['maintenance', 'list', '-o', 'json']);
    expect(JSON.parse(json.stdout)).toEqual(windows);
  });

  it('starts one now', async () => {
    await golden('start', ['maintenance', 'start', '--for', '2h', '--reason', 'new switch']);
    expect(sent).toEqual({ reason: 'new switch', starts_at: now, ends_at: now + 2 * HOUR });
    await run(['maintenance', 'start', '--ends-at', '3h', '--reason', 'new switch']);
    expect(sent).toEqual({ reason: 'new switch', starts_at: now, ends_at: now + 3 * HOUR });
    const both = await run(['maintenance', 'start', '--ends-at', '3h', '--for', '3h', '--reason', 'new switch']);
    expect(both).toMatchObject({ status: 64, stderr: expect.stringContaining('one of --for and --ends-at') });
    await golden('start-no-reason', ['maintenance', 'start', '--for', '2h'], 64);
    await golden('start-bad-span', ['maintenance', 'start', '--for', 'long', '--reason', 'x'], 64);
  });

  it('schedules one, by its end or its length', async () => {
    const from = ['maintenance', 'schedule', '--reason', 'kernel', '--from'];
    await golden('schedule', [...from, '2025-03-02T22:00:00+01:00', '--for', '90m']);
    const starts_at = Date.UTC(2025, 2, 2, 21) / 1000;
    expect(sent).toEqual({ reason: 'kernel', starts_at, ends_at: starts_at + 90 * 60 });
    expect(await run([...from, '12h', '--until', '2025-03-02'])).toMatchObject({ status: 64 });
    expect(await run([...from, '12h', '--until', '2025-03-03'])).toMatchObject({ status: 0 });
    expect(sent).toEqual({
      reason: 'kernel',
      starts_at: now + 12 * HOUR,
      ends_at: Date.UTC(2025, 2, 3) / 1000,
    });
    await golden('schedule-no-end', [...from, '12h'], 64);
    await golden('schedule-two-ends', [...from, '12h', '--until', '13h', '--for', '1h'], 64);
    await golden('schedule-over', [...from, '2025-02-01', '--for', '1h'], 64);
  });

  it('limits one to some agents, or lets it permit applies of assignments', async () => {
    await run(['maintenance', 'start', '--for', '1h', '--reason', 'x', '-l', 'role=db']);
    expect(sent).toEqual({ reason: 'x', starts_at: now, ends_at: now + HOUR, selector: 'role=db' });
    const permit = ['maintenance', 'schedule', '--from', '1h', '--for', '1h', '--reason', 'nights', '--permit'];
    await golden('permit', [...permit, '--assignment', 'web', '--assignment', 'db']);
    expect(sent).toMatchObject({ kind: 'permit', assignments: ['web', 'db'] });
    await golden('permit-none', permit, 64);
    await golden('permit-selector', [...permit, '--assignment', 'web', '-l', 'role=db'], 64);
    await golden(
      'assignment-no-permit',
      ['maintenance', 'start', '--for', '1h', '--reason', 'x', '--assignment', 'web'],
      64,
    );
  });

  it('ends the active one', async () => {
    await golden('end', ['maintenance', 'end']);
    expect(sent).toEqual({ ends_at: now });
    expect(await run(['maintenance', 'end', active.id])).toMatchObject({ status: 0 });
    await golden('end-scheduled', ['maintenance', 'end', scheduled.id], 64);
    await golden('end-ended', ['maintenance', 'end', ended.id], 1);
    api.answer({ listMaintenanceWindows: { body: [active, { ...active, id: ulid(8) }] } });
    await golden('end-which', ['maintenance', 'end'], 64);
    api.answer({ listMaintenanceWindows: { body: [scheduled] } });
    await golden('end-none', ['maintenance', 'end'], 1);
    shown = [{ ...active, starts_at: now }];
    api.answer({ listMaintenanceWindows: { body: shown } });
    await run(['maintenance', 'end']);
    expect(sent).toEqual({ ends_at: now + 1 });
    shown = windows;
    api.answer({ listMaintenanceWindows: { body: windows } });
  });

  it('removes one when that is wanted', async () => {
    await golden('remove', ['maintenance', 'remove', scheduled.id, '--yes']);
    await golden('remove-no-terminal', ['maintenance', 'remove', scheduled.id], 64);
  });
});
