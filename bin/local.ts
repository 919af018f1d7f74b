/** `--local`: the agent's engine and facts of this machine, for the command line. */
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { ulid } from 'ulid';
import { apply, drift, plan } from '../src/agent/converge.js';
import { readFacts } from '../src/agent/facts.js';
import { thisHost } from '../src/agent/host/this-host.js';
import { Journal } from '../src/agent/journal.js';
import type { LocalFlags, LocalMachine } from '../src/cli/programs.js';
import { stateDirectory } from '../src/client/operator-files.js';
import { type FaultCode, isFault, messageOf } from '../src/kernel/fault.js';
import { systemClock as clock } from './this-process.js';

export async function local({ dataDir }: LocalFlags): Promise<LocalMachine> {
  process.umask(0o077);
  const attributes = readFacts();
  const directory = dataDir === undefined ? standardDirectory() : resolve(dataDir);
  const host = (signal: AbortSignal) => thisHost({ signal, dataDir: directory });
  // The command creates and locks the directory after this function returns its path.
  let opened: Journal | null = null;
  const journal = () => {
    opened ??= new Journal(directory);
    return opened;
  };
  return {
    dataDir: directory,
    hostname: attributes.hostname ?? hostname(),
    attributes,
    newId: () => ulid(),
    plan: (content, options) => plan(content, host(options.signal), { clock, ledger: journal(), ...options }),
    apply: async (content, { intend, onResults, operationId, ...options }) => {
      const outcome = await apply(content, host(options.signal), {
        clock,
        ledger: journal(),
        runId: operationId,
        ...options,
        intend: (intents, precautions) => {
          journal().recordPrecautions(precautions);
          journal().sync();
          intend(intents);
        },
        // Notes that cannot be written stay pending. The next change is then not announced, and so not begun.
        onResults: (items, notes) => {
          journal().recordNotes(notes);
          problemOf(journal());
          onResults(items);
        },
      });
      const error = problemOf(journal());
      return error === null || outcome.error !== null ? outcome : { ...outcome, end: 'failed', error };
    },
    drift: (content, options) => drift(content, host(options.signal), { clock, ledger: journal(), ...options }),
  };
}

/** Flushes the journal and returns its error, or null. */
function problemOf(journal: Journal): { readonly code: FaultCode; readonly message: string } | null {
  try {
    journal.sync();
    return null;
  } catch (error) {
    return { code: isFault(error) ? error.code : 'internal', message: messageOf(error) };
  }
}

/** Returns `/var/lib/orch-local` for root, otherwise a directory below the user's state directory. */
const standardDirectory = (): string =>
  process.geteuid?.() === 0 ? '/var/lib/orch-local' : join(stateDirectory(process.env), 'local');
