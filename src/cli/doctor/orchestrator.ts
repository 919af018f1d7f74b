/** Checks of `orch doctor`: the way to the orchestrator, its certificate, the clocks, the versions and the login. */
import { randomUUID } from 'node:crypto';
import type { ApiClient } from '../../client/api-client.js';
import type { Connection } from '../../client/connection.js';
import { connect } from '../../client/http-api-client.js';
import { logIn, type Signer } from '../../client/login.js';
import { urlText } from '../../client/server-url.js';
import { createTransport } from '../../client/transport.js';
import type { Agent } from '../../contract/agents.js';
import { CERTIFICATE_SOON_MS, type Status } from '../../contract/status.js';
import type { Clock } from '../../kernel/clock.js';
import { Fault, isFault } from '../../kernel/fault.js';
import { API_PORT } from '../../kernel/ports.js';
import { VERSION } from '../../kernel/version.js';
import { type DoctorCheck, failure, note, ok, problem, warning } from '../../programs/doctor-check.js';
import type { Context } from '../context.js';
import { agentName, formatDuration, formatTime } from '../format.js';
import { allAgents } from '../list-pages.js';
import { contestText } from '../render/contest.js';
import type { OperatorFindings } from './operator.js';

/** Milliseconds for each question to the orchestrator. */
const LIMIT_MS = 10_000;
/** Milliseconds that clocks may differ: the lifetime of a login's challenge. */
const SKEW_MS = 60_000;

export async function examineOrchestrator(
  { clock, signal }: Pick<Context, 'clock' | 'signal'>,
  { connection, isChosen, signer }: OperatorFindings,
): Promise<readonly DoctorCheck[]> {
  if (connection === null) return [note('orchestrator', 'not asked, because it is not known which one', null)];
  const api = open(connection, clock);
  try {
    const sent = clock.now();
    const { body, headers } = await within(connection, signal, (limit) =>
      api.callWithHeaders('getStatus', { signal: limit }),
    );
    const half = (sent + clock.now()) / 2;
    return [
      health(connection, body),
      certificate(connection, body.certificate_expires_at, clock.now()),
      clockCheck(headers.date, half),
      versionCheck(body.version),
      ...(await loginChecks(connection, { clock, signal, signer })),
    ];
  } catch (error) {
    return unanswered(connection, isChosen, error);
  } finally {
    api.close();
  }
}

/** Opens a client that never logs in by itself. */
const open = (connection: Connection, clock: Clock): ApiClient =>
  connect({
    connection,
    signer: () => Promise.reject(new Fault('unauthenticated', 'the session is over')),
    clock,
    newId: randomUUID,
    warn: () => {},
  });

/** Runs `work` with a signal that aborts at the time limit. Throws `unreachable` then. */
async function within<T>(
  connection: Connection,
  signal: AbortSignal,
  work: (limit: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = new AbortController();
  const late = new Fault('unreachable', `${urlText(connection.url)} did not answer within ${LIMIT_MS / 1000} seconds`, {
    hint: 'check the network, firewalls in between, and whether that host is overloaded',
  });
  const timer = setTimeout(() => limit.abort(late), LIMIT_MS);
  const stop = () => limit.abort(signal.reason);
  signal.addEventListener('abort', stop, { once: true });
  try {
    // The race, because not every step of a connection listens to the signal.
    return await Promise.race([
      work(limit.signal),
      new Promise<never>((_, reject) => {
        limit.signal.addEventListener('abort', () => reject(limit.signal.reason), { once: true });
      }),
    ]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
}

function unanswered(connection: Connection, isChosen: boolean, error: unknown): readonly DoctorCheck[] {
  if (isFault(error, 'tls_unknown', 'tls_mismatch')) {
    const { fingerprint } = error.data ?? {};
    const isNew = isFault(error, 'tls_unknown') && typeof fingerprint === 'string';
    return [
      ok('orchestrator', `${urlText(connection.url)} accepts connections`),
      isNew ? problem('certificate', error.message, trustFix(connection, fingerprint)) : failure('certificate', error),
    ];
  }
  if (isChosen) return [failure('orchestrator', error)];
  return [
    note(
      'orchestrator',
      `none is chosen, and none answers on this host (${urlText(connection.url)}); a machine with only an agent needs none`,
      `use one: orch profile create NAME --url https://HOST:${API_PORT}\nor run one on this host: orch serve install\nor try everything on this machine first: orch quickstart`,
    ),
  ];
}

function trustFix({ profile, url }: Connection, fingerprint: string): string {
  const command =
    profile === null
      ? `orch profile create NAME --url ${urlText(url)} --tls-fingerprint ${fingerprint}`
      : `orch profile update ${profile} --tls-fingerprint ${fingerprint}`;
  return `compare the fingerprint with what "orch serve" wrote when it started, then: ${command}`;
}

function health({ url }: Connection, { status, reasons }: Status): DoctorCheck {
  if (status === 'ok') return ok('orchestrator', `${urlText(url)} answers and is healthy`);
  const list = reasons.map(({ detail }) => detail).join('; ');
  return warning('orchestrator', `${urlText(url)} answers, and is degraded: ${list}`, 'see: orch status');
}

function certificate({ url, pin, ca }: Connection, expiresAt: number | undefined, now: number): DoctorCheck {
  if (url.protocol !== 'https:') return note('certificate', 'TLS is off for this address');
  const by = [...(pin === null ? [] : ['the pinned one']), ...(ca === null ? [] : [`signed by ${ca}`])];
  const left = expiresAt === undefined ? Number.POSITIVE_INFINITY : expiresAt * 1000 - now;
  if (expiresAt === undefined || left > CERTIFICATE_SOON_MS) return ok('certificate', `it is ${by.join(' and ')}`);
  const when = left <= 0 ? 'it has ended' : `it ends in ${formatDuration(Math.floor(left / 1000))}`;
  return warning(
    'certificate',
    `${when}, ${formatTime(expiresAt)}`,
    'on the host of the orchestrator: renew the files of tls_cert and tls_key; it takes them over by itself',
  );
}

function clockCheck(date: string | undefined, here: number): DoctorCheck {
  const there = Date.parse(date ?? '');
  if (Number.isNaN(there)) return note('clock', 'the orchestrator does not tell its time');
  const ahead = here - there;
  const seconds = Math.round(Math.abs(ahead) / 1000);
  // The header has whole seconds.
  if (Math.abs(ahead) <= SKEW_MS) return ok('clock', `within ${seconds + 1} s of the orchestrator's`);
  return warning(
    'clock',
    `${seconds} s ${ahead > 0 ? 'ahead of' : 'behind'} the orchestrator's: times in answers look wrong, and sessions seem to end early or late`,
    'set the clock of the host that is wrong: timedatectl set-ntp true',
  );
}

function versionCheck(theirs: string): DoctorCheck {
  const name = 'version';
  if (theirs === VERSION) return ok(name, `orch ${VERSION}, the same as the orchestrator`);
  const distance = minorsBetween(VERSION, theirs);
  const found = `this command is orch ${VERSION}, and the orchestrator ${theirs}`;
  if (distance > 0) return warning(name, `${found}, which is older`, 'upgrade the orchestrator first');
  if (distance < -1) return warning(name, found, 'upgrade this command: more than one minor release is not supported');
  return note(name, found, distance === 0 ? null : 'upgrade this command');
}

/** Returns by how many minor releases `ours` is newer; another major release counts as many. */
function minorsBetween(ours: string, theirs: string): number {
  const [major = 0, minor = 0] = ours.split('.').map(Number);
  const [otherMajor = 0, otherMinor = 0] = theirs.split('.').map(Number);
  return (major - otherMajor) * 1000 + minor - otherMinor;
}

interface LoginOptions extends Pick<Context, 'clock' | 'signal'> {
  readonly signer: Signer | null;
}

/**
 * Logs in with the key, looks at the agents, and ends that session at once, so that the session of other commands stays as
 * it is.
 */
async function loginChecks(
  connection: Connection,
  { clock, signal, signer }: LoginOptions,
): Promise<readonly DoctorCheck[]> {
  const { token: fixed } = connection;
  if (fixed === null && signer === null) {
    return [note('login', 'not tried, because no key opens without a question', 'try it: orch login')];
  }
  const warnings: string[] = [];
  const transport = createTransport(connection);
  try {
    return await within(connection, signal, async (limit) => {
      const token = fixed ?? (await newToken());
      const api = open({ ...connection, token }, clock);
      try {
        const { operator } = await api.call('getSession', { signal: limit });
        const contested = contestChecks(await allAgents(api, { signal: limit }));
        if (fixed === null) await api.call('endSession', { signal: limit });
        const found = `${fixed === null ? 'your key' : 'ORCH_TOKEN'} belongs to ${operator.username} (${operator.role})`;
        const [unbound] = warnings;
        const login = unbound === undefined ? ok('login', found) : warning('login', `${found}; ${unbound}`, BIND);
        return [login, ...contested];
      } finally {
        api.close();
      }
    });
  } catch (error) {
    if (isFault(error, 'rate_limited')) return [warning('login', error.message, 'try again in a minute')];
    return [failure('login', error)];
  } finally {
    transport.close();
  }

  async function newToken(): Promise<string> {
    const { url, allowUnboundLogin: allowUnbound } = connection;
    if (signer === null) throw new Fault('key_unreadable', 'there is no key to log in with');
    const warn = (message: string) => void warnings.push(message);
    return (await logIn({ transport, url, signer, allowUnbound, warn })).token;
  }
}

/** Returns a warning for each agent whose key several machines have. */
const contestChecks = (agents: readonly Agent[]): readonly DoctorCheck[] =>
  agents.flatMap((agent) => {
    const text = contestText(agent);
    if (text === null) return [];
    const name = agentName(agent);
    return [
      warning('agents', `${name}: ${text}; nothing is sent to it`, `decide which it is: orch agents keep ${name}`),
    ];
  });

const BIND = 'for a server behind a proxy, set api_spki in its settings';
