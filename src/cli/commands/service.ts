/** The commands that make services of the orchestrator and the agent. */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeOwnDirectory, profilesPath, standardKeyPath } from '../../client/operator-files.js';
import type { Profile } from '../../client/profile-file.js';
import { loadProfiles, saveProfiles, withProfile } from '../../client/profiles.js';
import { publicKeyOfKeyObject } from '../../identity/key-object.js';
import { loadOrCreateKey } from '../../identity/private-key.js';
import { Fault } from '../../kernel/fault.js';
import { AGENT_PORT } from '../../kernel/ports.js';
import type {
  AgentInstallRequest,
  InstalledServe,
  ServeAddresses,
  ServeInstallPlan,
  UninstalledService,
} from '../../programs/service.js';
import { hostProblem } from '../../settings/advertised-host.js';
import type { Context } from '../context.js';
import { defineCommand, optionalArgument } from '../define-command.js';
import { choice, flag, text } from '../options.js';
import { fields, type Line, lines, proseOf, stack } from '../outcome.js';
import { readPublicKey } from '../read-public-key.js';
import { readInlineOrFile } from '../text-files.js';
import { readToken } from './agent.js';

const EVERYWHERE = '0.0.0.0';
const LOOPBACK = '127.0.0.1';

/** `orch serve install`. */
export const installServe = defineCommand({
  examples: ['orch serve install', 'orch serve install --api-host 0.0.0.0 --advertised-host orch.example.org'],
  detail: [
    'Asks which addresses the orchestrator listens on and how others reach it, stores the answers in',
    '/etc/orch/orchestrator.yaml, starts the service orch-serve, now and at each boot, and waits until it is ready.',
    'Without a terminal, and when it is installed already, it keeps what the file says: options change that.',
    'The first operator of a new orchestrator has the key of --operator-key, or your own, which is made if you have',
    'none. With your own, your profile then points to this orchestrator.',
  ],
  access: 'local',
  options: {
    api_host: text('ADDRESS', `address the API listens on, such as ${EVERYWHERE}`),
    agent_host: text('ADDRESS', `address the agent link listens on, such as ${EVERYWHERE}`),
    advertised_host: text('NAME', 'name or address under which other hosts reach this one'),
    operator_key: text('KEY', 'public key of the first operator: hex, an OpenSSH line, or @FILE', {
      completes: 'file',
    }),
    operator_name: text('NAME', 'name of the first operator [admin]'),
  },
  run: async (context, { operator_key: given, operator_name: username, ...flags }) => {
    const plan = await context.programs.service.planServe();
    const settings = await addressesOf(context, plan, flags);
    const { advertised_host: name } = settings;
    if (name !== undefined && (await context.programs.service.isUnknownName(name)))
      context.warn(
        `this host finds no address of ${name}; other hosts can reach the orchestrator only if they find one`,
      );
    const own = plan.hasStore || given !== undefined ? null : ownKey(context);
    const bootstrap = plan.hasStore
      ? null
      : { publicKey: own?.publicKey ?? (await readKey(context, given ?? '')), username: username ?? 'admin' };
    const installed = await context.programs.service.installServe({ settings, bootstrap });
    const profile = own === null ? null : await saveProfile(context, installed);
    return {
      body: { ...installed, operator_key_file: own?.path ?? null, profile },
      names: [installed.unit],
      view: stack(
        lines(`The orchestrator runs as ${installed.unit}, and starts with this host.`),
        fields(
          ['API', installed.api_url],
          ['Agents connect to', installed.agent_address],
          ['Public key', installed.public_key],
          ['Certificate', installed.tls_fingerprint ?? 'none: TLS is off'],
          ['Settings', plan.configFile],
          ['Log', `journalctl -u ${installed.unit}`],
        ),
        proseOf(own === null ? [] : [keyLine(own)]),
        lines('Add a machine with: orch enroll create'),
      ),
    };
  },
});

async function addressesOf(
  { prompt }: Context,
  plan: ServeInstallPlan,
  flags: ServeAddresses,
): Promise<ServeAddresses> {
  const host = flags.advertised_host;
  const mistake = host === undefined || host === '' ? null : hostProblem(host);
  if (mistake !== null) throw noHost('--advertised-host', host ?? '', mistake);
  const given = Object.values(flags).some((value) => value !== undefined);
  const isStored = Object.values(plan.settings).some((value) => value !== undefined);
  if (given || !prompt.possible || (isStored && plan.hasStore)) {
    return {
      api_host: flags.api_host ?? plan.settings.api_host,
      agent_host: flags.agent_host ?? plan.settings.agent_host,
      advertised_host: flags.advertised_host ?? plan.settings.advertised_host,
    };
  }
  const other = 'other machines, on all addresses of this host';
  const answer = await prompt.choose('Who reaches this orchestrator?', [other, 'this host alone']);
  const place = answer === other ? EVERYWHERE : LOOPBACK;
  if (place === LOOPBACK) return { api_host: place, agent_host: place, advertised_host: plan.settings.advertised_host };
  const standard = plan.settings.advertised_host ?? plan.addresses[0] ?? '';
  const [, ...addresses] = plan.addresses;
  const known = addresses.length === 0 ? '' : ` (it has ${addresses.join(', ')})`;
  const answered = await prompt.text(`Under which name or address do they reach it${known}?`, standard);
  const name = answered.trim();
  const wrong = name === '' ? null : hostProblem(name);
  if (wrong !== null) throw noHost('the answer', name, wrong);
  return { api_host: place, agent_host: place, advertised_host: name };
}

const noHost = (what: string, host: string, why: string): Fault =>
  new Fault('usage', `${what}: ${JSON.stringify(host)} ${why}`, {
    hint: 'write a name such as orch.example.org, or an address; nothing was installed',
  });

interface OwnKey {
  readonly path: string;
  readonly publicKey: string;
  readonly isNew: boolean;
}

/** Returns the key of the operator who runs this, and makes one if there is none. Throws for a key that cannot be read. */
function ownKey({ env, globals }: Context): OwnKey {
  const path = globals.keyFile ?? env.ORCH_KEY_FILE ?? standardKeyPath(env);
  const isNew = !existsSync(path);
  makeOwnDirectory(dirname(path));
  return { path, publicKey: publicKeyOfKeyObject(loadOrCreateKey(path)), isNew };
}

const keyLine = ({ path, isNew }: OwnKey): Line =>
  isNew
    ? `You are its first operator. Your new key is ${path}: whoever has it is root on all machines, so keep it and copy it.`
    : `You are its first operator, with your key ${path}.`;

async function readKey(context: Context, given: string): Promise<string> {
  return readPublicKey(await readInlineOrFile(given, context.readInput), '--operator-key');
}

/** Name of the profile that an installation writes. */
const PROFILE = 'home';

/** Points the operator's profile to the new orchestrator; another default stays. Returns its name. */
async function saveProfile({ env }: Context, installed: InstalledServe): Promise<string> {
  const profiles = await loadProfiles(profilesPath(env));
  const profile: Profile = {
    url: installed.local_url,
    ...(installed.tls_fingerprint === null ? {} : { tls_fingerprint: installed.tls_fingerprint }),
  };
  const changed = withProfile(profiles, PROFILE, profile);
  await saveProfiles({ ...changed, standard: profiles.standard ?? PROFILE });
  return PROFILE;
}

/** `orch serve uninstall`. */
export const uninstallServe = defineCommand({
  examples: ['orch serve uninstall'],
  detail: ['Stops the service orch-serve and keeps its data and settings.'],
  access: 'local',
  consent: true,
  run: async ({ programs, prompt }) => {
    await prompt.consent('Stop the orchestrator of this host and remove its service?');
    return uninstalledOutcome(await programs.service.uninstallServe());
  },
});

/** `orch agent install`. */
export const installAgent = defineCommand({
  examples: [
    'echo orch-enroll-v1.… | orch agent install orch.home --token -',
    'orch agent install orch.home --orchestrator-key 3b6a27bc…29 --terminals on',
  ],
  detail: [
    'Starts the service orch-agent, now and at each boot, and waits until the agent is connected, waits for approval,',
    'or says what keeps it. A token that cannot be shown yet, as while the network is down, is shown later. Operators',
    'get no shell on this machine unless you allow terminals. Without HOST the agent waits for "orch discover".',
  ],
  access: 'local',
  args: { target: optionalArgument('HOST[:PORT]', `address of the orchestrator [port ${AGENT_PORT}]`) },
  options: {
    token: text('TOKEN', 'enrolment token; - reads standard input, @FILE a file'),
    orchestrator_key: text('HEX', "the orchestrator's public key"),
    trust_on_first_use: flag('trust the key that the orchestrator shows first'),
    hostname: text('NAME', "hostname to report [the system's hostname]"),
    terminals: choice('STATE', ['on', 'off'], 'whether operators may open shells on this machine'),
  },
  run: async (context, input) => {
    const token = await readToken(context, input.token);
    const request: AgentInstallRequest = {
      target: input.target,
      token,
      orchestratorKey: input.orchestrator_key,
      trustOnFirstUse: input.trust_on_first_use,
      hostname: input.hostname,
      terminals: await terminalsOf(context, input.terminals),
    };
    const installed = await context.programs.service.installAgent(request);
    const { link, last_error, hint, unit } = installed;
    if (last_error !== null && link !== 'connected' && link !== 'pending') {
      context.warn(`${last_error}${hint === null ? '' : ` (${hint})`}`);
    }
    return {
      body: installed,
      names: [installed.node_id],
      view: stack(
        lines(`The agent runs as ${unit}, and starts with this machine. ${meaningOf(link)}`),
        fields(
          ['Node ID', installed.node_id],
          ['Orchestrator', installed.orchestrator ?? 'not known yet'],
          ['Log', `journalctl -u ${unit}`],
        ),
      ),
    };
  },
});

/** Returns whether to allow terminals; undefined leaves the settings as they are. */
async function terminalsOf({ prompt }: Context, given: 'on' | 'off' | undefined): Promise<boolean | undefined> {
  if (given !== undefined) return given === 'on';
  if (!prompt.possible) return undefined;
  return prompt.confirm('May operators of the fleet open shells on this machine?', 'add --terminals on or off');
}

/** Returns a sentence about the state of an agent's connection. */
function meaningOf(link: string): string {
  if (link === 'connected') return 'It is connected.';
  if (link === 'pending') return 'It waits for approval: orch agents approve NODE';
  if (link === 'rejected') return 'The orchestrator has rejected it.';
  return 'It is not connected yet, and keeps trying.';
}

/** `orch agent uninstall`. */
export const uninstallAgent = defineCommand({
  examples: ['orch agent uninstall', 'orch agent uninstall --purge'],
  detail: [
    'Keeps the identity of this machine; "orch agent leave" deletes it. --purge also deletes the data and settings of',
    'the agent, and /opt/orch where no Linux package has installed orch. What modules have made stays.',
  ],
  access: 'local',
  options: { purge: flag('delete identity, data, settings and program as well') },
  consent: true,
  run: async ({ programs, prompt }, { purge }) => {
    await prompt.consent(
      purge
        ? 'Remove the agent of this machine with its identity, data, settings and program?'
        : 'Stop the agent of this machine and remove its service?',
    );
    // Shows what was done, and is deleted with the program.
    if (purge) await Promise.all([import('../render/pager.js'), import('../render/yaml.js')]);
    return uninstalledOutcome(await programs.service.uninstallAgent({ purge }));
  },
});

const uninstalledOutcome = (removed: UninstalledService) => ({
  body: removed,
  names: [removed.unit],
  view: stack(
    lines(removed.unit_file === null ? `There is no service ${removed.unit}.` : `Stopped and removed ${removed.unit}.`),
    proseOf(removed.kept.length === 0 ? [] : [`Kept: ${removed.kept.join(', ')}`]),
  ),
});
