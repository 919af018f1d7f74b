/** Provides the read-only Debian tree that all hosts of this machine start from. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { mustRun } from './command.js';

const cache = '/var/cache/orch-test-hosts';
const recipe = fileURLToPath(new URL('base-image.sh', import.meta.url));
/** The first process of a host, and what starts its services. */
export type Init = 'systemd' | 'openrc';

const inits: Readonly<Record<Init, readonly string[]>> = {
  systemd: ['systemd', 'systemd-sysv', 'dbus'],
  openrc: ['openrc', 'sysvinit-core'],
};
const packages = ['iproute2', 'iputils-ping', 'passwd', 'procps', 'apt'];
/**
 * The needs of a Node that is not from a package, and those of single suites. Hosts share one image, because to build one takes as
 * long as a suite.
 */
export const HOST_PACKAGES: readonly string[] = [
  ...['libatomic1', 'libstdc++6'],
  ...['busybox-static', 'git', 'ifupdown', 'libnss-extrausers', 'locales', 'nftables', 'tzdata'],
];
export const DNF_PACKAGES: readonly string[] = ['dnf', 'dnf-plugins-core', 'rpm'];
/** Path and content: the plugins come together, and that of a repository of installed packages needs another program. */
export const NO_LOCAL_PLUGIN = ['/etc/dnf/plugins/local.conf', '[main]\nenabled = false\n'] as const;

/** Returns the path of the tree, building it first when this machine has none with these packages (about 15 s). */
export async function baseImage(extraPackages: readonly string[] = [], init: Init = 'systemd'): Promise<string> {
  const suite = suiteOf(readFileSync('/etc/os-release', 'utf8'));
  const include = [...new Set([...inits[init], ...packages, ...extraPackages])].sort().join(',');
  const key = createHash('sha256')
    .update(readFileSync(recipe))
    .update(`${suite} ${include}`)
    .digest('hex')
    .slice(0, 12);
  const target = `${cache}/${suite}-${key}`;
  if (!existsSync(target)) await mustRun(['bash', recipe, target, suite, include], { timeoutMs: 600_000 });
  return target;
}

/** The same Debian as this machine's, so that its Node finds the C library it was linked with; else the oldest supported. */
function suiteOf(osRelease: string): string {
  const isDebian = /^ID=debian$/m.test(osRelease);
  const codename = /^VERSION_CODENAME=([a-z]+)$/m.exec(osRelease)?.[1];
  return isDebian && codename !== undefined ? codename : 'bookworm';
}
