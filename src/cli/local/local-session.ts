/** A session of `--local`: this machine, its believed state, and the lock on its directory. */

import { createHash, createHmac } from 'node:crypto';
import type { Agent } from '../../contract/agents.js';
import { holdDataDirectory } from '../../identity/data-directory.js';
import { Fault } from '../../kernel/fault.js';
import { isSecretName } from '../../kernel/ids.js';
import { VERSION } from '../../kernel/version.js';
import type { AgentFacts } from '../../language/evaluate.js';
import type { SecretSource } from '../../language/filling.js';
import type { ValueMap } from '../../language/values.js';
import type { LocalApply, LocalEngine, LocalMachine } from '../../programs/local.js';
import { resourceKey } from '../../resources/resource-key.js';
import type { Context } from '../context.js';
import { readTags } from '../tag-arguments.js';
import { readTextFile } from '../text-files.js';
import type { BelievedState } from './believed-state-schema.js';
import type { LocalChoice } from './local-options.js';
import { loadState, stateAfter } from './local-state.js';

export interface LocalSession {
  readonly machine: LocalMachine;
  readonly facts: AgentFacts;
  readonly secret: SecretSource;
  readonly engine: LocalEngine;
  /** Believed state, including the results of cut-off applies. */
  readonly state: BelievedState;
  /** Existence of what cut-off applies announced to change, before they touched it, by resource key. */
  readonly existed: ReadonlyMap<string, boolean>;
  /** This machine in the shape of an agent. */
  readonly agent: Agent;
}

/** Locks the directory, opens the session and runs `work`. Throws `data_dir_locked` while another `--local` runs. */
export async function withLocal<T>(
  context: Context,
  choice: LocalChoice,
  work: (session: LocalSession) => Promise<T>,
): Promise<T> {
  const tags = readTags(choice.tag);
  const machine = await context.programs.local({ dataDir: choice.dataDir });
  const directory = holdDataDirectory(machine.dataDir, 'orch --local');
  try {
    const stored = loadState(machine.dataDir);
    const engine = machine.openEngine();
    if (engine.loss !== null) context.warn(`${engine.loss}; what only a cut-off apply made counts as there before`);
    const existed = announcedBy(engine.applies);
    const state = engine.applies
      .filter(({ operationId }) => operationId > (stored.operation_id ?? ''))
      .reduce((before, apply) => stateAfter(before, { ...apply, existed }), stored);
    const facts = factsOf(machine, tags);
    return await work({
      machine,
      facts,
      secret: secretsFrom(choice.secretFile, state.mask_key),
      engine,
      state,
      existed,
      agent: agentOf(facts),
    });
  } finally {
    directory.release();
  }
}

/** Returns the existence of announced things. The first announcement counts: later applies found what earlier ones had made. */
function announcedBy(applies: readonly LocalApply[]): ReadonlyMap<string, boolean> {
  const existed = new Map<string, boolean>();
  for (const { content, intents } of applies) {
    for (const intent of intents) {
      const item = content.resources[intent.index];
      const key = item && resourceKey(item);
      if (key !== undefined && !existed.has(key)) existed.set(key, intent.existed);
    }
  }
  return existed;
}

/** Returns the facts of this machine. Its node ID only needs to be stable. */
const factsOf = ({ hostname, attributes, facts }: LocalMachine, tags: AgentFacts['tags']): AgentFacts => ({
  node_id: createHash('sha256').update(`local ${hostname}`).digest('hex').slice(0, 32),
  name: hostname,
  attributes,
  tags,
  facts: { parts: facts.parts, own: facts.own as ValueMap },
});

const agentOf = ({ node_id, name, attributes, tags }: AgentFacts): Agent => ({
  node_id,
  name,
  status: 'approved',
  connected: true,
  connected_at: 0,
  updated_at: 0,
  initial_hostname: name,
  initial_ip: '',
  agent_version: VERSION,
  public_key: '',
  attributes: { ...attributes },
  tags: { ...tags },
  standing: null,
  standing_since: null,
  standing_reason: null,
  trial: null,
  automation_stopped: null,
});

/** Reads secrets from files. The tag of a value is a hash under `maskKey` (hex): it shows a change without revealing the value. */
function secretsFrom(given: readonly string[], maskKey: string): SecretSource {
  const values = new Map(given.map(readSecret));
  return (name) => {
    const value = values.get(name);
    return value === undefined ? null : { value, tag: tagOf(maskKey, name, value) };
  };
}

function readSecret(word: string): readonly [name: string, value: string] {
  const at = word.indexOf('=');
  const [name, path] = [word.slice(0, at), word.slice(at + 1)];
  if (at > 0 && isSecretName(name) && path !== '') return [name, readTextFile(path)];
  throw new Fault('usage', `--secret-file takes NAME=FILE, not "${word}"`);
}

const tagOf = (maskKey: string, name: string, value: string): string =>
  createHmac('sha256', Buffer.from(maskKey, 'hex')).update(`${name}\0${value}`).digest('hex').slice(0, 4);
