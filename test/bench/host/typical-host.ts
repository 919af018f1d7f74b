/** Plans and no-op applies of a typical host on a booted Debian: files, directories, accounts, packages, services. */
import { existsSync, readdirSync } from 'node:fs';
import { type Fleet, startFleet } from '../../hosts/fleet.js';
import type { BootedHost } from '../../hosts/host.js';
import { nodePath, projectPath } from '../../hosts/root.js';
import { whyNoHosts } from '../../hosts/why-no-hosts.js';
import { unguarded } from '../guard.js';
import { CFENGINE } from '../peers.js';
import { alternate, atMostTimes, type Bench, type Goal, numbersOf, OURS, type Part, rowOf } from '../row.js';
import { type Taken, takenOf, timed } from '../run-program.js';
import { sized } from '../sized.js';
import { cfenginePolicy, moduleText, nodeLimit, PACKAGES } from './declared.js';

const ROUNDS = sized(9, 1);
const LIMIT = 'Node, dpkg-query and systemctl';
const CACHED = 'orch with cache files';
const PLAN = 'typical host: plan, nothing to do';
const APPLY = 'typical host: apply, nothing to do';
const UNCACHED = "typical host: plan, apt's cache files off";
const CACHE_SETTING = '/etc/apt/apt.conf.d/99-no-cache-files';
const LISTS = '/var/lib/apt/lists';

const orch = (verb: 'plan' | 'apply') => [
  ...[nodePath, `${projectPath}/dist/orch/orch.js`, verb, '--local', '-f', '/root/typical.orch.yaml'],
  ...(verb === 'apply' ? ['--yes'] : []),
];
const cfengine = (verb: 'plan' | 'apply') => [
  ...['cf-agent', '--no-lock', '--file', '/root/typical.cf'],
  ...(verb === 'plan' ? ['--dry-run'] : []),
];

export const typicalHost: Part = {
  name: 'host',
  summary:
    'orch plan and apply --local of 50 resources on a booted Debian; beside a bare Node with two commands, and CFEngine',
  run: async (bench) => {
    const machine = bench.shared(
      () => boot(bench),
      (made) => made?.fleet.stop(),
    );
    for (const verb of ['plan', 'apply'] as const) {
      const what = verb === 'plan' ? PLAN : APPLY;
      await bench.measure([what, `${what}, CPU`], async () => {
        const made = await machine();
        if (made === null) return [];
        const { host, hasCfengine } = made;
        const programs = new Map([
          [OURS, () => run(host, orch(verb))],
          [LIMIT, () => run(host, [nodePath, '/root/limit.mjs'])],
        ]);
        if (hasCfengine) programs.set(CFENGINE, () => run(host, cfengine(verb)));
        const runs = await alternate(ROUNDS, programs);
        return rowsOf(what, runs, verb === 'plan' ? atMostTimes(0.2, CFENGINE) : null);
      });
    }
    await bench.measure([UNCACHED, `${UNCACHED}, CPU`], async () => {
      const made = await machine();
      if (made === null) return [];
      const { host } = made;
      const programs = new Map([
        [OURS, () => withoutCache(host, () => run(host, orch('plan')))],
        [CACHED, () => run(host, orch('plan'))],
      ]);
      return rowsOf(UNCACHED, await alternate(ROUNDS, programs), atMostTimes(1.1, CACHED));
    });
  },
};

const rowsOf = (what: string, runs: ReadonlyMap<string, readonly Taken[]>, goal: Goal | null) => [
  rowOf({ what, unit: 'ms', runs: numbersOf(runs, ({ wall }) => wall), goal }),
  rowOf({ what: `${what}, CPU`, unit: 'ms', runs: numbersOf(runs, ({ cpu }) => cpu), goal: null }),
];

interface Machine {
  readonly fleet: Fleet;
  readonly host: BootedHost;
  readonly hasCfengine: boolean;
}

/** Boots a machine and applies the declared state. Null where none can be booted; the bench then names it as missing. */
async function boot(bench: Bench): Promise<Machine | null> {
  const reason = whyNoHosts();
  if (reason !== null) {
    bench.missing('typical host', reason);
    return null;
  }
  bench.say('typical host: a machine boots (the first time its image is made)');
  const { fleet, hasCfengine } = await unguarded(() => startMachine(bench));
  const host = fleet.host('typical');
  try {
    await settle(host, hasCfengine);
  } catch (error) {
    await fleet.stop();
    throw error;
  }
  return { fleet, host, hasCfengine };
}

/** Installs CFEngine in the image if its package is available. */
async function startMachine(bench: Bench): Promise<Omit<Machine, 'host'>> {
  const hosts = ['typical'];
  const binds = packageLists(bench);
  if (bench.peers) {
    try {
      return { fleet: await startFleet({ hosts, binds, packages: ['cfengine3', 'python3'] }), hasCfengine: true };
    } catch (error) {
      bench.missing(`${CFENGINE} on the typical host`, `no image with it: ${String(error).slice(0, 200)}`);
    }
  }
  return { fleet: await startFleet({ hosts, binds }), hasCfengine: false };
}

/** Binds the package lists of this machine, because a booted one has no way out and apt needs lists to read. */
function packageLists({ missing }: Bench): readonly { readonly from: string; readonly to: string }[] {
  const hasLists = existsSync(LISTS) && readdirSync(LISTS).some((name) => name.includes('_Packages'));
  if (!hasLists) {
    missing("apt's package lists on the typical host", 'this machine has none; apt-get update');
    return [];
  }
  const sources = ['/etc/apt/sources.list', '/etc/apt/sources.list.d'].filter((path) => existsSync(path));
  return [LISTS, ...sources].map((path) => ({ from: path, to: path }));
}

/** Puts library, module and Python where CFEngine's own update puts them. */
const PREPARE_CFENGINE = `
cp -r /usr/share/cfengine3/masterfiles/. /var/lib/cfengine3/inputs
mkdir -p /var/lib/cfengine3/modules/packages
cd /var/lib/cfengine3/modules/packages
cp /usr/share/cfengine3/masterfiles/modules/packages/vendored/apt_get.mustache apt_get
chmod 755 apt_get
ln -sf python3 /usr/bin/cfengine-selected-python
ls /var/lib/cfengine3/ppkeys/localhost.priv || cf-key
`;

async function settle(host: BootedHost, hasCfengine: boolean): Promise<void> {
  // As apt's timer leaves it every day, so that no apply refreshes the lists.
  await host.writeFile('/var/lib/apt/periodic/update-success-stamp', '');
  const packages = await newestPackages(host);
  await host.writeFile('/root/typical.orch.yaml', moduleText(packages));
  await host.writeFile('/root/limit.mjs', nodeLimit(packages));
  await must(host, orch('apply'));
  if (!hasCfengine) return;
  await must(host, ['sh', '-ec', PREPARE_CFENGINE]);
  await host.writeFile('/root/typical.cf', cfenginePolicy(packages), '0600');
  await must(host, cfengine('apply'));
  const repairs = await must(host, [...cfengine('apply'), '--inform']);
  if (repairs.trim() !== '') throw new Error(`cf-agent goes on changing the machine: ${repairs.slice(0, 500)}`);
}

/** Returns installed packages whose version is the newest that apt knows, so that there is nothing to do. */
async function newestPackages(host: BootedHost): Promise<readonly string[]> {
  const installed = (await must(host, ['sh', '-c', 'dpkg-query --show | cut -f1 | cut -d: -f1'])).trim().split('\n');
  const policies = await must(host, ['apt-cache', 'policy', ...installed]);
  const found = [...policies.matchAll(/^(\S+):\n {2}Installed: (\S+)\n {2}Candidate: (\S+)$/gm)];
  const newest = found.filter(([, , version, candidate]) => version === candidate).map(([, name]) => name as string);
  if (newest.length < PACKAGES)
    throw new Error(`the typical host has only ${newest.length} packages that are up to date`);
  return newest.slice(0, PACKAGES);
}

async function withoutCache<Result>(host: BootedHost, work: () => Promise<Result>): Promise<Result> {
  await host.writeFile(CACHE_SETTING, 'Dir::Cache::pkgcache "";\nDir::Cache::srcpkgcache "";\n');
  try {
    return await work();
  } finally {
    await must(host, ['rm', CACHE_SETTING]);
  }
}

const run = async (host: BootedHost, program: readonly string[]): Promise<Taken> =>
  takenOf(await must(host, timed(program)));

async function must(host: BootedHost, program: readonly string[]): Promise<string> {
  const { status, stdout, stderr } = await host.run(program, { timeoutMs: 120_000 });
  if (status === 0) return stdout;
  throw new Error(
    `${program.at(-1)} ended with ${status} on the typical host: ${stderr.slice(-1_000)}${stdout.slice(-500)}`,
  );
}
