/** Entries of cron on a booted Debian: made, changed by hand, repaired, removed. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { absent, entry, failures, LocalOrch, sh } from './local-orch.js';
import { describeHosts } from './requirements.js';

const BACKUP = {
  name: 'backup',
  schedule: '17  3 * * mon-fri',
  user: 'backup',
  command: 'tar cf "/srv/$(date +%F).tar" /etc',
  environment: { MAILTO: 'ops@example.net' },
};
const CONTENT = `MAILTO="ops@example.net"
17 3 * * mon-fri backup tar cf "/srv/$(date +\\%F).tar" /etc`;

const NO_OLD = absent('cron-unix', { name: 'old' });

describeHosts('entries of cron on a booted machine', () => {
  let fleet: Fleet;
  let host: BootedHost;
  let orch: LocalOrch;
  const run = (script: string) => sh(host, script);

  beforeAll(async () => {
    fleet = await startFleet({ hosts: ['cron'] });
    host = fleet.host('cron');
    orch = new LocalOrch(host, '/root/site.orch.yaml');
    await run('mkdir -p /etc/cron.d; rm -f /etc/cron.d/*; echo "@daily root true" >/etc/cron.d/old');
  });

  afterAll(async () => {
    await fleet?.stop();
  });

  it('are made, found and repaired when they are changed by hand, and left alone otherwise', async () => {
    expect(await orch.appliedAsPlanned(entry('cron-unix', BACKUP), NO_OLD)).toEqual([
      ['/etc/cron.d/backup', 'create', 'owner,group,mode'],
      ['/etc/cron.d/old', 'remove', ''],
    ]);
    expect(await run('cat /etc/cron.d/backup; stat -c "%U:%G %a" /etc/cron.d/backup; ls /etc/cron.d')).toBe(
      `${CONTENT}\nroot:root 644\nbackup`,
    );
    await orch.isSettled();
    expect((await orch.apply()).map(({ status }) => status)).toEqual(['unchanged', 'unchanged']);
    await run(
      'sed -i s/17/18/ /etc/cron.d/backup; chmod 666 /etc/cron.d/backup; echo "@daily root true" >/etc/cron.d/old',
    );
    expect(await orch.differences('drift')).toEqual([
      ['/etc/cron.d/backup', 'update', 'content,mode'],
      ['/etc/cron.d/old', 'remove', ''],
    ]);
    expect(failures(await orch.apply())).toEqual({});
    expect(await run('cat /etc/cron.d/backup; ls /etc/cron.d')).toBe(`${CONTENT}\nbackup`);
    expect(await orch.differences()).toEqual([]);
  });

  it('are refused for a user that cron would not find, and come after one that is declared', async () => {
    const late = { ...BACKUP, name: 'late', user: 'late' };
    await orch.declare(entry('cron-unix', BACKUP), NO_OLD, entry('cron-unix', late));
    const refusal = { '/etc/cron.d/late': 'unknown_owner: there is no user "late" on this machine' };
    expect(failures(await orch.results('plan'))).toEqual(refusal);
    expect(failures(await orch.apply())).toEqual(refusal);
    await orch.declare(entry('cron-unix', BACKUP), entry('user-unix', { name: 'late' }), entry('cron-unix', late));
    expect(failures(await orch.apply())).toEqual({});
    expect(await orch.differences()).toEqual([]);
  });

  it('go when they are no longer declared', async () => {
    await orch.declare();
    expect(failures(await orch.apply())).toEqual({});
    expect(await run('ls -A /etc/cron.d')).toBe('');
  });

  it('are those of root: an ordinary user is refused with the reason', async () => {
    await run('useradd -m eve; echo "@daily root true" >/etc/cron.d/old');
    const eve = new LocalOrch(host, '/home/eve/site.orch.yaml', 'eve');
    await eve.declare(entry('cron-unix', { ...BACKUP, user: 'eve' }), NO_OLD);
    expect(failures(await eve.apply())).toEqual({
      '/etc/cron.d/backup': expect.stringMatching(/^permission_denied: /),
      '/etc/cron.d/old': expect.stringMatching(/^permission_denied: /),
    });
    expect(await run('ls -A /etc/cron.d')).toBe('old');
  });
});
