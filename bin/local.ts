/** `--local`: the agent's engine and facts of this machine, for the command line. */
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { ulid } from 'ulid';
import { apply, drift, plan } from '../src/agent/converge.js';
import { readFacts } from '../src/agent/facts.js';
import { thisHost } from '../src/agent/host/this-host.js';
import type { LocalFlags, LocalMachine } from '../src/cli/programs.js';
import { stateDirectory } from '../src/client/directories.js';
import { systemClock as clock } from './system-clock.js';

export async function local({ dataDir }: LocalFlags): Promise<LocalMachine> {
  process.umask(0o077);
  const attributes = readFacts();
  return {
    dataDir: dataDir === undefined ? standardDirectory() : resolve(dataDir),
    hostname: attributes.hostname ?? hostname(),
    attributes,
    newId: () => ulid(),
    plan: (content, options) => plan(content, thisHost(), { clock, ...options }),
    apply: (content, options) => apply(content, thisHost(), { clock, ...options }),
    drift: (content, options) => drift(content, thisHost(), { clock, ...options }),
  };
}

/** `/var/lib/orch-local` for root, else below the user's state directory. */
const standardDirectory = (): string =>
  process.geteuid?.() === 0 ? '/var/lib/orch-local' : join(stateDirectory(process.env), 'local');
