/** Tells whether this machine can boot hosts. */
import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { isInstalled } from '../support/is-installed.js';
import { cgroupRoots } from './cgroup.js';

const tools = ['systemd-nspawn', 'mmdebstrap', 'ip', 'nsenter', 'unshare', 'flock', 'mountpoint', 'find', 'bash'];

/** The needs of a host beyond the tools: namespaces, an overlay, a bridge and a veth pair, tried where they vanish at once. */
const trial = `
mount -t tmpfs none /mnt && mkdir /mnt/lower /mnt/upper /mnt/work /mnt/root
mount -t overlay overlay -o lowerdir=/mnt/lower,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
ip link add orch-trial type bridge
ip link add orch-trial-0 type veth peer name eth0`;

/** The reason in one sentence, or null when hosts can be booted. */
export function whyNoHosts(): string | null {
  if (process.platform !== 'linux') return `booted hosts need Linux, this is ${process.platform}`;
  if (process.getuid?.() !== 0) return 'booted hosts need root';
  const missing = tools.filter((tool) => !isInstalled(tool));
  if (missing.length > 0)
    return `${missing.join(', ')} not installed (apt-get install systemd-container mmdebstrap iproute2)`;
  return whyNoNode() ?? whyNoKernel();
}

function whyNoNode(): string | null {
  const { stdout } = spawnSync('ldd', [process.execPath], { encoding: 'utf8', timeout: 10_000 });
  if (!/libnode\.so/.test(stdout ?? '')) return null;
  return `${process.execPath} needs libnode.so of this system, which a booted host lacks; use a Node from nodejs.org`;
}

function whyNoKernel(): string | null {
  if (!cgroupRoots().some(isWritable)) return 'no control group hierarchy is writable here';
  const { status, stderr } = spawnSync('unshare', ['--mount', '--net', 'sh', '-ec', trial], {
    encoding: 'utf8',
    timeout: 10_000,
  });
  if (status === 0) return null;
  return `this kernel or container does not permit what a host needs: ${stderr.trim().replaceAll('\n', '; ')}`;
}

function isWritable(directory: string): boolean {
  try {
    accessSync(directory, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
