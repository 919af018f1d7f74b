/** Timers of systemd on a booted Debian: made, run, changed by hand part by part, repaired, removed. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { until } from '../support/orch.js';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { absent, entry, failures, LocalOrch, sh } from './local-orch.js';
import { describeHosts } from './requirements.js';

const IDENTITY = 'job.timer';
const FILES = '/etc/systemd/system/job.timer /etc/systemd/system/job.service';
const WORDS = ['a b', '50%', '$HOME', '"q"\\'];
const JOB = {
  name: 'job',
  command: [
    '/bin/sh',
    '-c',
    'printf "%%s|" "$WORD" "$@" >/var/tmp/job; id -un >>/var/tmp/job'.replace('%%', '%'),
    'sh',
    ...WORDS,
  ],
  on_calendar: 'Mon..Fri *-*-* 03:00',
  persistent: true,
  randomized_delay: '5min',
  user: 'backup',
  environment: { WORD: '100% "sure"' },
};

describeHosts('timers on a booted machine', () => {
  let fleet: Fleet;
  let host: BootedHost;
  let orch: LocalOrch;
  const run = (script: string) => sh(host, script);
  const state = () => run('systemctl is-enabled job.timer; systemctl is-active job.timer || true');

  beforeAll(async () => {
    fleet = await startFleet({ hosts: ['timers'] });
    host = fleet.host('timers');
    orch = new LocalOrch(host, '/root/site.orch.yaml');
  });

  afterAll(async () => {
    await fleet?.stop();
  });

  it('start at boot and run, and pass their arguments on as they are', async () => {
    expect(await orch.appliedAsPlanned(entry('timer-systemd', JOB))).toEqual([
      [IDENTITY, 'create', 'timer,service,enabled,running'],
    ]);
    expect(await state()).toBe('enabled\nactive');
    expect(await run(`stat -c '%U:%G %a' ${FILES}`)).toBe('root:root 644\nroot:root 644');
    expect(await run('systemctl show job.timer -p TimersCalendar -p Persistent -p RandomizedDelayUSec')).toMatch(
      /OnCalendar=Mon\.\.Fri \*-\*-\* 03:00:00[\s\S]*RandomizedDelayUSec=5min[\s\S]*Persistent=yes/,
    );
    await run('systemctl start job.service');
    expect(await run('cat /var/tmp/job')).toBe(`${['100% "sure"', ...WORDS].map((word) => `${word}|`).join('')}backup`);
    expect(await orch.differences()).toEqual([]);
    expect(await orch.differences('drift')).toEqual([]);
    expect((await orch.apply()).map(({ status }) => status)).toEqual(['unchanged']);
  });

  it.each([
    ['systemctl stop job.timer', 'running'],
    ['systemctl disable job.timer', 'enabled'],
    ['sed -i s/03:00/04:00/ /etc/systemd/system/job.timer; systemctl daemon-reload', 'timer'],
    ['chmod 666 /etc/systemd/system/job.service', 'service_mode'],
    ['rm /etc/systemd/system/job.service; systemctl daemon-reload', 'service'],
    [
      'systemctl disable --now job.timer; rm -f /etc/systemd/system/job.*; systemctl daemon-reload',
      'timer,service,enabled,running',
    ],
  ])('are repaired after: %s', async (change, fields) => {
    await run(change);
    expect((await orch.differences('drift')).map(([, , found]) => found)).toEqual([fields]);
    expect(failures(await orch.apply())).toEqual({});
    expect(await state()).toBe('enabled\nactive');
    expect(await orch.differences()).toEqual([]);
  });

  it('run at intervals, and take another schedule and command', async () => {
    const often = { name: 'job', command: 'touch /var/tmp/often', every: '1s' };
    expect(await orch.appliedAsPlanned(entry('timer-systemd', often))).toEqual([[IDENTITY, 'update', 'timer,service']]);
    const ran = async () => (await host.run(['test', '-e', '/var/tmp/often'])).status === 0;
    await until(ran, 'the timer has run its command');
    expect(await orch.differences()).toEqual([]);
    expect(await orch.differences('drift')).toEqual([]);
    await orch.declare(entry('timer-systemd', JOB));
    expect(failures(await orch.apply())).toEqual({});
  });

  it('are refused for a calendar, a user and a name that the machine does not have for them', async () => {
    await run("printf '[Timer]\\nOnCalendar=daily\\n' >/usr/lib/systemd/system/shipped.timer");
    const wrong = [
      { ...JOB, name: 'when', on_calendar: 'Blursday 03:00' },
      { ...JOB, name: 'whose', user: 'nobody-here' },
      { ...JOB, name: 'shipped' },
    ];
    await orch.declare(entry('timer-systemd', JOB), ...wrong.map((body) => entry('timer-systemd', body)));
    const planned = failures(await orch.results('plan'));
    expect(planned).toEqual({
      'when.timer': expect.stringMatching(/^value_unknown: systemd does not take on_calendar "Blursday 03:00"/),
      'whose.timer': 'unknown_owner: there is no user "nobody-here" on this machine',
      'shipped.timer':
        'unit_unsuitable: /usr/lib/systemd/system/shipped.timer is the unit of a package; give the timer another name',
    });
    expect(failures(await orch.apply())).toEqual(planned);
    expect(await run('ls /etc/systemd/system | grep -E "when|whose|shipped" || true')).toBe('');
  });

  it('go with both units and a run in progress, and absent ones whoever made them', async () => {
    await orch.declare(entry('timer-systemd', { ...JOB, command: 'sleep 600' }));
    expect(failures(await orch.apply())).toEqual({});
    await run('systemctl start --no-block job.service');
    expect(await orch.appliedAsPlanned()).toEqual([[IDENTITY, 'remove', '']]);
    expect(
      await run(`ls ${FILES} 2>/dev/null; systemctl list-units --all "job.*" --no-legend; pgrep -x sleep || true`),
    ).toBe('');
    await run(`printf '[Timer]\\nOnCalendar=daily\\n[Install]\\nWantedBy=timers.target\\n' >/etc/systemd/system/job.timer
      printf '[Service]\\nExecStart=/bin/true\\n' >/etc/systemd/system/job.service
      systemctl daemon-reload; systemctl enable --now job.timer`);
    await orch.declare(absent('timer-systemd', { name: 'job' }));
    expect(failures(await orch.apply())).toEqual({});
    expect(
      await run('systemctl is-enabled job.timer; systemctl is-active job.timer || true').catch(() => 'disabled'),
    ).toContain('disabled');
    expect(await orch.differences()).toEqual([]);
  });

  it('are not for an agent that is not root', async () => {
    await run('useradd -m ida');
    const hers = new LocalOrch(host, '/home/ida/site.orch.yaml', 'ida');
    await hers.declare(entry('timer-systemd', { name: 'hers', command: '/bin/true', every: '1h' }));
    expect(failures(await hers.apply())['hers.timer']).toMatch(/^permission_denied: /);
  });
});
