/** Agents that replace their release: what runs is waited for, and a release that cannot work is rolled back. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { VERSION } from '../../src/kernel/version.js';
import { until } from '../support/orch.js';
import { describeHosts } from './requirements.js';
import { ok, PACKAGING, startUpgradingFleet, type UpgradingFleet } from './upgrading-fleet.js';

const SLOW = `name: slow
supports:
  - platform: linux
resources:
  - resource:
      script: {program: sh, manages: a slow thing, apply: "sleep 12; touch /root/slow-is-done"}
`;

describeHosts(
  'agents that are upgraded',
  () => {
    let fleet: UpgradingFleet;

    beforeAll(async () => {
      fleet = await startUpgradingFleet(
        ['web-01', 'db-01'],
        [
          { version: '0.1.1' },
          // Its agent ends at once, and its other commands work.
          { version: '0.1.2', first: "if (process.argv[2] === 'agent') process.exit(7);" },
          { version: '0.1.3', isTampered: true },
          { version: '0.1.4', isForeign: true },
        ],
      );
    });

    afterAll(() => fleet?.stop());

    it('refuse a version that the orchestrator does not have', async () => {
      const { exit, results } = await fleet.upgrade('9.9.9', 'web-01');
      expect(exit).toBe(3);
      expect(results[0]?.reason).toContain(`there is no package of orch 9.9.9 for linux ${process.arch}`);
    });

    it('wait for an apply and a command, and lose neither', async () => {
      const { control } = fleet;
      const [web, db] = [fleet.host('web-01'), fleet.host('db-01')];
      await control.writeFile('/root/slow.orch.yaml', SLOW);
      const apply = ok(control, 'orch apply web-01 -f /root/slow.orch.yaml --yes -o json');
      const exec = control.run(['orch', 'exec', 'db-01', '--', 'sh', '-c', 'sleep 12; echo done']);
      await until(async () => (await web.run(['pgrep', '-f', 'sleep 12'])).status === 0, 'the script runs');
      await until(async () => (await db.run(['pgrep', '-f', 'sleep 12'])).status === 0, 'the command runs');
      const upgraded = await fleet.upgrade('0.1.1', '--selector', '*', '--canary', '1', '--max-failures', '1');
      expect(upgraded.results.map(({ status, reason }) => ({ status, reason }))).toEqual([
        { status: 'succeeded', reason: null },
        { status: 'succeeded', reason: null },
      ]);
      expect(upgraded.exit).toBe(0);
      expect(JSON.parse(await apply)).toMatchObject({ status: 'succeeded' });
      expect(await web.run(['test', '-e', '/root/slow-is-done'])).toMatchObject({ status: 0 });
      expect(await exec).toMatchObject({ status: 0, stdout: 'done\n' });
      expect(await fleet.versions()).toEqual({ 'web-01': '0.1.1', 'db-01': '0.1.1' });
      expect(await ok(web, 'orch --version; readlink /opt/orch/current')).toMatch(/^orch 0\.1\.1\nreleases\/0\.1\.1-/);
      // Other users can start it, whatever modes its tarball gives.
      expect(await ok(web, 'runuser -u nobody -- /opt/orch/current/bin/orch --version')).toBe('orch 0.1.1\n');
      expect(await ok(web, 'find /opt/orch/current/ -not -type l -perm /6022')).toBe('');
      expect(await ok(control, 'orch agents list')).toContain('0.1.1 (newer)');
      const { stderr } = await control.run(['orch', 'status']);
      expect(stderr).toContain('2 agents have another version');
      const unit = '/etc/systemd/system/orch-agent-upgrade.service';
      await until(async () => (await web.run(['test', '-e', unit])).status === 1, 'the trial is removed');
    });

    it('return to their release when the new one cannot run, and say why', async () => {
      const { control } = fleet;
      const { exit, results } = await fleet.upgrade('0.1.2', 'web-01');
      expect(exit).toBe(3);
      expect(results[0]?.reason).toMatch(
        /^rolled back to 0\.1\.1: the new agent ends again and again; its log ends with:/,
      );
      const isWhole = async () => (await fleet.agents()).every(({ connected }) => connected);
      await until(isWhole, 'the agents are connected');
      expect(await fleet.versions()).toEqual({ 'web-01': '0.1.1', 'db-01': '0.1.1' });
      const left = async () => ok(fleet.host('web-01'), 'ls /opt/orch/releases');
      await until(async () => /^0\.1\.1-\w+\n$/.test(await left()), 'the broken release is deleted');
      expect(await ok(control, 'orch audit list --limit 20')).toContain('was rolled back to 0.1.1');
      expect(await ok(control, 'orch notifications list')).toContain('was rolled back to 0.1.1');
    });

    it('refuse a release that is not as its publisher made it, and keep running', async () => {
      const { results } = await fleet.upgrade('0.1.3', 'web-01');
      expect(results[0]?.reason).toContain('dist/orch/orch.js differs from the manifest');
      const foreign = await fleet.upgrade('0.1.4', 'web-01');
      expect(foreign.results[0]?.reason).toContain('its signature does not match');
      expect(await ok(fleet.host('web-01'), 'ls /opt/orch/releases')).toMatch(/^0\.1\.1-\w+\n$/);
      expect((await fleet.agents()).every(({ connected }) => connected)).toBe(true);
    });

    it('use the package again once it is installed again', async () => {
      const web = fleet.host('web-01');
      await ok(web, 'dpkg --install /srv/packages/*.deb 2>&1');
      await until(async () => (await fleet.versions())['web-01'] === VERSION, 'the agent runs from the package');
      expect(await ok(web, 'orch --version')).toBe(`orch ${VERSION}\n`);
    });

    it('cannot replace the release of the orchestrator', async () => {
      const { control } = fleet;
      const { token } = JSON.parse(await ok(control, 'orch enroll create --auto-approve -o json'));
      await ok(control, `echo ${token} | orch agent install orch --token -`);
      const { results } = await fleet.upgrade('0.1.1', 'orch');
      expect(results[0]?.reason).toContain('this machine also runs the orchestrator');
    });
  },
  PACKAGING,
);
