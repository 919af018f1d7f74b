/** The file system of one host: the base image below, everything the host writes in a layer of its own. */
import { appendFileSync, chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { mustRun } from './command.js';

export interface RootSpec {
  readonly base: string;
  /** True for a host without Node and orch. */
  readonly isBare: boolean;
  /** Directory of the host within the run's directory. */
  readonly directory: string;
  readonly hostname: string;
  /** Lines `address name` of all hosts of the run. */
  readonly addresses: readonly string[];
}

/** Where Node and the project appear in every host. */
export const nodePath = '/usr/local/bin/node';
export const projectPath = '/opt/orch';

/** Mounts the tree and returns its path. */
export async function mountRoot({ base, isBare, directory, hostname, addresses }: RootSpec): Promise<string> {
  const [upper, work, root] = [`${directory}/upper`, `${directory}/work`, `${directory}/root`];
  for (const path of [upper, work, root]) mkdirSync(path, { recursive: true });
  chmodSync(upper, 0o755);
  await mustRun([
    'mount',
    '-t',
    'overlay',
    'overlay',
    '-o',
    `lowerdir=${base},upperdir=${upper},workdir=${work}`,
    root,
  ]);
  writeFileSync(`${root}/etc/hostname`, `${hostname}\n`);
  writeFileSync(`${root}/etc/hosts`, '127.0.0.1 localhost\n::1 localhost\n');
  appendFileSync(`${root}/etc/hosts`, `${addresses.join('\n')}\n`);
  if (isBare) return root;
  writeFileSync(`${root}/usr/local/bin/orch`, `#!/bin/sh\nexec ${nodePath} ${projectPath}/dist/orch/orch.js "$@"\n`, {
    mode: 0o755,
  });
  return root;
}
