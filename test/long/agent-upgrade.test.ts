/** Upgrades of agents on booted hosts that are interrupted: the machine restarts, the orchestrator restarts, the cable is cut. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeHosts } from '../hosts/requirements.js';
import { ok, PACKAGING, startUpgradingFleet, type UpgradingFleet } from '../hosts/upgrading-fleet.js';

const SLOW = `name: slow
supports:
  - platform: linux
resources:
  - resource:
      script: {program: sh, manages: a slow thing, apply: "sleep 20"}
`;

/** Waits for a condition for as many seconds. */
async function within(seconds: number, condition: () => Promise<boolean>, what: string): Promise<void> {
  const end = performance.now() + seconds * 1000;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`still waiting until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

describeHosts(
  'an upgrade of an agent',
  () => {
    let fleet: UpgradingFleet;
    const target = async () => (await ok(fleet.host('web-01'), 'readlink /opt/orch/current || echo none')).trim();
    const isBack = async () => (await fleet.agents()).every(({ connected }) => connected);

    beforeAll(async () => {
      fleet = await startUpgradingFleet(
        ['web-01'],
        [
          { version: '0.1.1' },
          { version: '0.1.2' },
          // Its agent runs and does nothing.
          {
            version: '0.1.4',
            first: "if (process.argv[2] === 'agent') { setInterval(() => undefined, 60_000); return; }",
          },
        ],
      );
    });

    afterAll(() => fleet?.stop());

    it('is rolled back when the new agent does not reach the orchestrator, over a restart of the machine', async () => {
      const upgraded = fleet.upgrade('0.1.4', 'web-01');
      await within(120, async () => (await target()).includes('0.1.4'), 'the release is on trial');
      await fleet.host('web-01').reboot();
      const { results } = await upgraded;
      expect(results[0]?.reason).toMatch(
        /^rolled back to 0\.1\.0: the new agent did not reach the orchestrator within 180 seconds/,
      );
      await within(60, isBack, 'the agent is connected again');
      expect(await target()).toBe('none');
    });

    it('ends as it should while the orchestrator is restarted', async () => {
      const upgraded = fleet.upgrade('0.1.1', 'web-01');
      await within(120, async () => (await target()).includes('0.1.1'), 'the release is on trial');
      await ok(fleet.control, 'systemctl restart orch-serve');
      expect(await upgraded).toMatchObject({ exit: 0, results: [{ status: 'succeeded' }] });
      expect(await fleet.versions()).toEqual({ 'web-01': '0.1.1' });
    });

    it('leaves an agent running when the disk is full, and ends once there is room', async () => {
      const web = fleet.host('web-01');
      // A file system of the agent's own, which is filled while the release is on trial.
      await ok(web, 'systemctl stop orch-agent; mkdir /root/kept; cp -a /var/lib/orch-agent/. /root/kept');
      await ok(
        web,
        'mount -t tmpfs -o size=1m,mode=700 tmpfs /var/lib/orch-agent; cp -a /root/kept/. /var/lib/orch-agent',
      );
      await ok(web, 'systemctl start orch-agent');
      await within(60, isBack, 'the agent is connected');
      const upgraded = fleet.upgrade('0.1.4', 'web-01');
      await within(120, async () => (await target()).includes('0.1.4'), 'the release is on trial');
      await web.run(['sh', '-c', 'cat /dev/zero > /var/lib/orch-agent/full']);
      await within(300, async () => (await target()).includes('0.1.1'), 'the old release is back');
      await within(60, isBack, 'the agent is connected in spite of the full disk');
      await ok(web, 'rm /var/lib/orch-agent/full');
      const { results } = await upgraded;
      expect(results[0]?.status).toBe('failed');
      await within(60, isBack, 'the agent is connected again');
      expect(await target()).toContain('0.1.1');
    });

    it('is rolled back when the cable is cut, and reports that once it is plugged in', async () => {
      const { control } = fleet;
      const web = fleet.host('web-01');
      await control.writeFile('/root/slow.orch.yaml', SLOW);
      // The command gives up while the cable is cut; the apply goes on.
      const apply = control.run(['orch', 'apply', 'web-01', '-f', '/root/slow.orch.yaml', '--yes'], {
        timeoutMs: 900_000,
      });
      await within(60, async () => (await web.run(['pgrep', '-f', 'sleep 20'])).status === 0, 'the script runs');
      const upgraded = fleet.upgrade('0.1.2', 'web-01');
      const [agent] = await fleet.agents();
      const waits = async () =>
        (await ok(control, `orch api GET /agents/${agent?.node_id}/upgrade`)).includes('an apply');
      await within(120, waits, 'the agent waits for the apply');
      await web.cutCable();
      await within(120, async () => (await target()).includes('0.1.2'), 'the release is on trial');
      await within(300, async () => (await target()).includes('0.1.1'), 'the old release is back');
      await web.plugCable();
      const { results } = await upgraded;
      expect(results[0]?.reason).toContain('did not reach the orchestrator within 180 seconds: cannot reach');
      expect(await apply).toMatchObject({ status: 124 });
      const isDone = async () => (await ok(control, 'orch ops list -o json')).includes('"succeeded"');
      await within(60, isDone, 'the result of the apply has come');
      await within(60, isBack, 'the agent is connected again');
    });

    it('ends when a package is installed meanwhile, and the agent runs from that', async () => {
      const web = fleet.host('web-01');
      const upgraded = fleet.upgrade('0.1.4', 'web-01');
      await within(120, async () => (await target()).includes('0.1.4'), 'the release is on trial');
      await ok(web, 'dpkg --install /srv/packages/*.deb 2>&1');
      await within(60, async () => (await fleet.versions())['web-01'] === '0.1.0', 'the agent runs from the package');
      expect(await upgraded).toMatchObject({ exit: 3, results: [{ status: 'failed' }] });
      expect(await target()).toBe('none');
    });
  },
  PACKAGING,
);
