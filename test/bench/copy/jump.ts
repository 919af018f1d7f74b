/** An OpenSSH server on the loopback that is its own jump host, and the commands that reach it. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isInstalled } from '../../support/is-installed.js';
import { canServeSsh, SshServer } from '../../support/ssh-server.js';

export interface Jump {
  readonly server: SshServer;
  /** `ssh` with these arguments, through the jump host. */
  ssh(...args: readonly string[]): readonly string[];
  /** `scp` through the jump host. */
  scp(...args: readonly string[]): readonly string[];
  /** `rsync` over such an `ssh`; null when it is not installed. */
  readonly rsync: ((...args: readonly string[]) => readonly string[]) | null;
  stop(): Promise<void>;
}

/** Name of the machine behind the jump host. */
export const MACHINE = 'bench';
export const SCP = 'scp -J';
export const RSYNC = 'rsync over ssh -J';

/** Resolves to null when there is no server; `missing` gets the reason. */
export async function startJump(directory: string, missing: (reason: string) => void): Promise<Jump | null> {
  if (!canServeSsh()) {
    missing('its server is not installed, or this is not root; apt-get install openssh-server');
    return null;
  }
  const server = await SshServer.start(directory);
  const config = join(directory, 'client-config');
  const lines = [
    `Host ${MACHINE} jump`,
    '  HostName 127.0.0.1',
    `  Port ${server.port}`,
    '  User root',
    `  IdentityFile ${server.key}`,
    '  IdentitiesOnly yes',
    `  UserKnownHostsFile ${join(directory, 'known')}`,
    '  StrictHostKeyChecking accept-new',
    '  LogLevel ERROR',
    `Host ${MACHINE}`,
    '  ProxyJump jump',
  ];
  writeFileSync(config, `${lines.join('\n')}\n`);
  return {
    server,
    ssh: (...args) => ['ssh', '-F', config, ...args],
    scp: (...args) => ['scp', '-q', '-F', config, ...args],
    rsync: isInstalled('rsync') ? (...args) => ['rsync', '-r', '-e', `ssh -F ${config}`, ...args] : null,
    stop: () => server.stop(),
  };
}
