/** A plan of a typical machine asks each tool once, however many resources there are. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { describeHosts } from './requirements.js';
import { nodePath, projectPath } from './root.js';

/** Plans what it reads on standard input, and prints the commands that were run for it and the statuses of the results. */
const PROGRAM = `
const dist = '${projectPath}/dist/src';
const { plan } = await import(dist + '/agent/converge.js');
const { thisHost } = await import(dist + '/agent/host/this-host.js');
let text = '';
for await (const chunk of process.stdin) text += chunk;
const real = thisHost();
const commands = [];
const host = {
  platform: real.platform,
  accounts: () => real.accounts(),
  observe: (requests) => real.observe(requests),
  commit: (steps) => real.commit(steps),
  run: (command) => {
    commands.push(command.argv[0]);
    return real.run(command);
  },
};
const clock = { now: Date.now, monotonic: () => performance.now() };
const { results } = await plan(JSON.parse(text), host, { clock });
console.log(JSON.stringify({ commands, results: results.map(({ result }) => result) }));
`;

interface Counted {
  readonly commands: readonly string[];
  readonly results: readonly { readonly kind: string; readonly status: string; readonly error: unknown }[];
}

describeHosts('a plan of a typical machine', () => {
  let fleet: Fleet;
  let host: BootedHost;

  const lines = async (script: string) => {
    const { stdout } = await host.run(['sh', '-c', script]);
    return stdout.split('\n').filter((line) => line !== '');
  };
  const resource = (kind: string, name: string) => ({
    module: 'typical',
    kind,
    identity: name,
    id: null,
    name: null,
    body: { name },
    after: [],
  });
  const planned = async (resources: readonly unknown[]): Promise<Counted> => {
    const input = JSON.stringify({ resources, removals: [] });
    const { status, stdout, stderr } = await host.run([nodePath, '/root/count.mjs'], { input });
    if (status !== 0) throw new Error(stderr);
    return JSON.parse(stdout) as Counted;
  };

  beforeAll(async () => {
    fleet = await startFleet({ hosts: ['web-01'] });
    host = fleet.host('web-01');
    await host.writeFile('/root/count.mjs', PROGRAM);
  });

  afterAll(async () => {
    await fleet?.stop();
  });

  it('runs as many commands for 50 packages, 50 services and 20 users as for two of each', async () => {
    const packages = (await lines('dpkg-query -W | cut -f1 | cut -d: -f1')).slice(0, 50);
    await host.run(['apt-mark', 'manual', ...packages]);
    const units = (
      await lines(
        "systemctl list-unit-files --type=service --state=static,enabled,disabled --no-legend | cut -d' ' -f1",
      )
    ).filter((unit) => !unit.includes('@'));
    const users = (await lines('cut -d: -f1 /etc/passwd')).slice(0, 20);
    expect([packages.length, users.length]).toEqual([50, 20]);
    expect(units.length).toBeGreaterThan(49);
    // As people write modules: what belongs together stands together.
    const mixed = Array.from({ length: 50 }, (_, index) => [
      resource('package-apt', packages[index] ?? ''),
      resource('service-systemd', units[index] ?? ''),
      ...(index < 20 ? [resource('user-unix', users[index] ?? '')] : []),
    ]).flat();
    const many = await planned(mixed);
    expect(many.results).toHaveLength(120);
    expect(many.results.filter(({ status }) => status !== 'unchanged')).toEqual([]);
    const few = await planned(mixed.slice(0, 6));
    expect(many.commands).toEqual(few.commands);
    process.stderr.write(`a plan of 120 resources runs: ${many.commands.join(', ')}\n`);
  });
});
