/** The commands of `orch agent`, which run and manage the agent of this machine. */

import { Fault } from '../../kernel/fault.js';
import { AGENT_PORT, DISCOVERY_PORT } from '../../kernel/ports.js';
import type { Context } from '../context.js';
import { argument, defineCommand } from '../define-command.js';
import { flag, integer, text } from '../options.js';
import { fieldsOf, lines, linesOf, textLines } from '../outcome.js';
import { createFile, readTextFile } from '../text-files.js';

/** Options of each command. */
export const agentOptions = {
  dataDir: text('DIR', 'directory of keys and journal [/var/lib/orch-agent for root, else below $XDG_STATE_HOME]', {
    completes: 'file',
  }),
} as const;

/** Options of the commands that run the agent. */
export const agentRunOptions = {
  orchestratorKey: text('HEX', "the orchestrator's public key"),
  token: text('TOKEN', 'enrolment token; - reads standard input, @FILE a file'),
  trustOnFirstUse: flag('trust the key that the orchestrator shows first'),
  hostname: text('NAME', "hostname to report [the system's hostname]"),
  config: text('FILE', 'configuration file [/etc/orch/agent.yaml if it exists]', { completes: 'file' }),
  ...agentOptions,
} as const;

/** `orch agent`. */
export const listenForOrchestrator = defineCommand({
  examples: ['orch agent --orchestrator-key 3b6a27bc…29', 'orch agent --trust-on-first-use'],
  detail: [
    'Waits for a discovery packet ("orch discover" sends one), and stays connected to its orchestrator until it is',
    'stopped. It accepts only packets signed with the pinned key, the given key, or the key in the enrolment token;',
    'with --trust-on-first-use and no pinned key, the first packet. After a lost connection it tries the last',
    'address, and listens as well. "orch agent connect" needs no packet.',
  ],
  access: 'local',
  ownsSignals: true,
  options: { port: integer('PORT', `UDP port of discovery packets [${DISCOVERY_PORT}]`), ...agentRunOptions },
  run: async (context, input) => {
    const token = await readToken(context, input.token);
    return { exitStatus: await context.programs.agent.listen({ ...input, token }) };
  },
});

/** `orch agent connect`. */
export const connectAgent = defineCommand({
  examples: [
    'orch agent connect orch.home --orchestrator-key 3b6a27bc…29',
    'echo orch-enroll-v1.… | orch agent connect orch.home --token -',
  ],
  detail: [
    'Stays connected until it is stopped. The orchestrator must have the given key ("orch status" shows it), or the',
    'key in the enrolment token. Without both, the command asks on a terminal, or accepts the key with',
    '--trust-on-first-use. Then the key is pinned. The configuration file is read again whenever it changes.',
    'The token is sent once and not stored. Give it on standard input (-), in a file (@FILE) or in the variable',
    'ORCH_AGENT_TOKEN: other users of this machine can see a plain word.',
  ],
  access: 'local',
  ownsSignals: true,
  args: { target: argument('HOST[:PORT]', `address of the orchestrator [port ${AGENT_PORT}]`) },
  options: agentRunOptions,
  run: async (context, input) => {
    const { programs, prompt } = context;
    const token = await readToken(context, input.token);
    const confirmKey = (question: string) => prompt.confirm(question, 'add --orchestrator-key HEX');
    return {
      exitStatus: await programs.agent.connect({ ...input, token, confirmKey: prompt.possible ? confirmKey : null }),
    };
  },
});

/** @param given `-`, `@FILE` or the token */
export async function readToken(context: Context, given: string | undefined): Promise<string | undefined> {
  if (given === undefined) return undefined;
  const text = (await read(context, given)).trim();
  if (text === '') throw new Fault('usage', `--token ${given} holds nothing`);
  return text;
}

async function read({ prompt, readInput }: Context, given: string): Promise<string> {
  if (given === '-') return prompt.possible ? prompt.secret('Enrolment token:', 'pipe it in') : readInput();
  return given.startsWith('@') ? readTextFile(given.slice(1)) : given;
}

/** `orch agent status`. */
export const showAgentStatus = defineCommand({
  examples: ['orch agent status'],
  detail: ['Compare the node ID, which is the hash of the key, with the one that "orch agents approve" shows.'],
  access: 'local',
  options: agentOptions,
  run: async ({ programs }, input) => {
    const status = await programs.agent.status(input);
    const rows = Object.entries(status).map(
      ([key, value]) => [labelOf(key), value === null ? '-' : String(value)] as const,
    );
    return { body: status, names: [String(status.node_id)], view: fieldsOf(rows) };
  },
});

/** Turns a key into a label: `node_id` gives `Node ID`. */
const labelOf = (key: string): string => {
  const words = key.replaceAll('_', ' ').replace(/\bp?id\b/, (word) => word.toUpperCase());
  return words.charAt(0).toUpperCase() + words.slice(1);
};

/** `orch agent repin`. */
export const repinAgent = defineCommand({
  examples: ['orch agent repin'],
  detail: ['Use it if the orchestrator really has a new key. The next "orch agent connect" pins the key it is given.'],
  access: 'local',
  consent: true,
  options: agentOptions,
  run: async ({ programs, prompt }, input) => {
    await prompt.consent("Forget the orchestrator's key that this machine's agent has pinned?");
    await programs.agent.repin(input);
    return { view: lines('Forgot it. Connect again with: orch agent connect HOST --orchestrator-key HEX') };
  },
});

/** `orch agent leave`. */
export const leaveFleet = defineCommand({
  examples: ['orch agent leave'],
  detail: [
    'Stops and deletes the service orch-agent if it runs this agent, and deletes the identity, the pinned key and the',
    'journal. Applied resources stay on this machine. On the orchestrator, reject the agent and remove it.',
  ],
  access: 'local',
  consent: true,
  options: agentOptions,
  run: async ({ programs, prompt, note }, input) => {
    const { data_dir, service, service_kept } = await programs.agent.planLeave(input);
    const what = service === null ? data_dir : `${data_dir} and the service ${service}`;
    if (service_kept !== null) note(`A service is left alone. ${service_kept}`);
    await prompt.consent(`Delete ${what}, and with it the identity of this machine in its fleet?`);
    const left = await programs.agent.leave(input);
    return {
      body: left,
      view: lines(`Left. On the orchestrator: orch agents reject NODE, then orch agents remove NODE`),
    };
  },
});

/** `orch agent config-schema`. */
export const printAgentSchema = defineCommand({
  examples: ['orch agent config-schema > agent.schema.json', 'orch agent config-schema --out agent.schema.json'],
  access: 'local',
  options: { out: text('FILE', 'write it to a new file', { completes: 'file' }) },
  run: async ({ programs }, { out }) => {
    const schema = await programs.agent.configSchema();
    const json = JSON.stringify(schema, null, 2);
    if (out === undefined) return { body: schema, view: linesOf(textLines(json)) };
    createFile(out, `${json}\n`);
    return { names: [out], view: lines(`Wrote ${out}.`) };
  },
});
