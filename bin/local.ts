/** `--local`: the agent's engine, journal and facts of this machine, for the command line. */
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { ulid } from 'ulid';
import { OwnFactsReader } from '../src/agent/facts/own-facts.js';
import { PackageReader } from '../src/agent/facts/package-versions.js';
import { readFacts } from '../src/agent/facts.js';
import { openLocalEngine } from '../src/agent/local-engine.js';
import { stateDirectory } from '../src/client/operator-files.js';
import type { PackageVersions } from '../src/kernel/facts.js';
import { Fault } from '../src/kernel/fault.js';
import type { LocalFlags, LocalMachine } from '../src/programs/local.js';
import { AGENT_DEFAULTS } from '../src/settings/agent.js';
import { systemClock } from './this-process.js';

export async function local({ dataDir }: LocalFlags): Promise<LocalMachine> {
  process.umask(0o077);
  const { attributes, parts } = readFacts();
  const now = () => systemClock.monotonic();
  const reader = new OwnFactsReader({ directory: () => AGENT_DEFAULTS['facts.directory'], now });
  const { own } = await reader.read(true);
  const known = Object.entries(own).flatMap(([name, { value }]) => (value === undefined ? [] : [[name, value]]));
  const directory = dataDir === undefined ? standardDirectory() : resolve(dataDir);
  return {
    dataDir: directory,
    hostname: attributes.hostname ?? hostname(),
    attributes,
    facts: { parts, own: Object.fromEntries(known) },
    packageVersions: readVersions,
    newId: () => ulid(),
    openEngine: () => openLocalEngine(directory, systemClock),
  };
}

async function readVersions(names: readonly string[]): Promise<PackageVersions> {
  const { versions, problem } = await new PackageReader().read(names);
  if (problem === null) return versions;
  throw new Fault('expression_error', `the versions of packages cannot be read: ${problem}`);
}

/** Returns `/var/lib/orch-local` for root, otherwise a directory below the user's state directory. */
const standardDirectory = (): string =>
  process.geteuid?.() === 0 ? '/var/lib/orch-local' : join(stateDirectory(process.env), 'local');
