/** Brings a release onto the disk: downloads its tarball from the agent port, unpacks it, checks it and starts its command once. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, createWriteStream, mkdirSync, rmSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { SecureContext } from 'node:tls';
import { promisify } from 'node:util';
import { renameDurably } from '../../disk/durable.js';
import { Fault, isFault, messageOf, systemCodeOf } from '../../kernel/fault.js';
import { type ReleasePlaces, realOf, setReleaseModes, verifyRelease } from '../../release/installed-releases.js';
import { type OwnRelease, ownRelease } from '../../release/own-release.js';
import { PACKAGE_PATH } from '../../wire/limits.js';
import type { OrchestratorMessageOf } from '../../wire/messages.js';
import { type DownloadSource, download, pauseUnless } from '../link/download.js';

export type WantedRelease = Pick<OrchestratorMessageOf<'upgrade'>, 'version' | 'sha256' | 'size'>;

interface FetchOptions {
  readonly wanted: WantedRelease;
  readonly source: DownloadSource;
  /** The agent's own key and certificate, from `dialContext`. */
  readonly context: SecureContext;
  readonly places: ReleasePlaces;
  /** Release that this agent runs from. A key that it names must have signed the new one. */
  readonly running: OwnRelease;
  readonly signal: AbortSignal;
}

const run = promisify(execFile);
/** Milliseconds for unpacking, and for one start of the command. */
const UNPACK_MS = 300_000;
const START_MS = 60_000;
const SYNC_MS = 120_000;
/** Milliseconds before a download is tried again: the orchestrator is busy, or the connection broke. */
const RETRY_MS = 10_000;
/** Attempts at connections that break, and milliseconds for all attempts. */
const ATTEMPTS = 5;
const DOWNLOAD_MS = 3_600_000;

/**
 * Returns the directory of the release, which is complete and checked.
 * @throws Fault `upgrade_failed`, or `cancelled` after `signal`
 */
export async function fetchRelease(options: FetchOptions): Promise<string> {
  const { wanted, places, running } = options;
  // The agent's mask keeps files from others, and every user may start the command.
  try {
    mkdirSync(places.releases, { recursive: true });
    for (const path of [join(places.releases, '..'), places.releases]) chmodSync(path, 0o755);
  } catch (cause) {
    throw failed(cause);
  }
  const releases = realOf(places.releases);
  const directory = join(releases, `${wanted.version}-${wanted.sha256.slice(0, 12)}`);
  const staging = `${directory}.new`;
  const tarball = `${directory}.tar.gz`;
  try {
    if (directory === running.directory) throw refused('this agent runs from that release already');
    // The rest of an earlier attempt may be damaged.
    for (const path of [directory, staging]) rmSync(path, { recursive: true, force: true });
    await downloadRelease(options, tarball);
    // No other user starts anything in it before it is checked.
    mkdirSync(staging, { mode: 0o700 });
    await unpack(tarball, staging, options);
    await check(staging, options);
    // After a power cut the link must not name a release of empty files, which could not even be rolled back.
    await run('sync', ['--file-system', staging], { timeout: SYNC_MS });
    renameDurably(staging, directory);
    return directory;
  } catch (cause) {
    if (options.signal.aborted) throw new Fault('cancelled', 'the agent stops', { cause });
    throw failed(cause);
  } finally {
    rmSync(tarball, { force: true });
    rmSync(staging, { recursive: true, force: true });
  }
}

function failed(cause: unknown): Fault {
  if (isFault(cause, 'upgrade_failed')) return cause;
  const isFull = systemCodeOf(cause) === 'ENOSPC';
  const hint = isFault(cause) ? cause.hint : undefined;
  return new Fault('upgrade_failed', isFull ? 'the disk of /opt has no room for the release' : messageOf(cause), {
    ...(hint === undefined ? {} : { hint }),
    cause,
  });
}

async function check(directory: string, { wanted, running }: FetchOptions): Promise<void> {
  await verifyRelease(directory, running.publicKey);
  setReleaseModes(directory);
  const release = ownRelease(join(directory, 'bin/node'));
  if (release === null) throw refused('what was unpacked is no release');
  const { version, cpu } = release;
  if (version !== wanted.version) throw refused(`the release is ${version}, and ${wanted.version} was wanted`);
  if (cpu !== process.arch) throw refused(`the release is for ${cpu}, and this machine is ${process.arch}`);
  const said = await startOnce(directory);
  if (!said.split(/\s+/).includes(version)) throw refused(`its command says it is ${said.trim().slice(0, 100)}`);
}

/** Starts the command of the new release, which finds a build for another system before anything is switched. */
async function startOnce(directory: string): Promise<string> {
  try {
    const { stdout } = await run(join(directory, 'bin/orch'), ['--version'], { timeout: START_MS, cwd: '/' });
    return stdout;
  } catch (cause) {
    throw refused(`its command does not start: ${messageOf(cause).slice(0, 500)}`);
  }
}

const refused = (why: string): Fault => new Fault('upgrade_failed', why);

async function unpack(tarball: string, directory: string, { wanted, signal }: FetchOptions): Promise<void> {
  const inside = `orch-${wanted.version}-${process.platform}-${process.arch}/lib/orch`;
  const words = ['--extract', '--gzip', '--file', tarball, '--directory', directory, '--strip-components', '3'];
  try {
    await run('tar', [...words, '--no-same-owner', '--no-same-permissions', '--', inside], {
      timeout: UNPACK_MS,
      signal,
    });
  } catch (cause) {
    throw refused(`the release cannot be unpacked: ${messageOf(cause).slice(0, 500)}`);
  }
}

/** Downloads into a file, with several attempts. Throws `upgrade_failed` unless it has the expected size and sum. */
async function downloadRelease(options: FetchOptions, path: string): Promise<void> {
  const { signal } = options;
  const end = performance.now() + DOWNLOAD_MS;
  for (let broken = 0; ; ) {
    try {
      if (await downloadOnce(options, path)) return;
      if (performance.now() > end) throw refused('the orchestrator was busy with other downloads for an hour');
    } catch (error) {
      broken += 1;
      if (isFault(error) || broken >= ATTEMPTS || systemCodeOf(error) === 'ENOSPC' || signal.aborted) throw error;
    }
    await pauseUnless(RETRY_MS, signal);
  }
}

/** Returns false when the orchestrator is busy. */
function downloadOnce({ wanted, ...options }: FetchOptions, path: string): Promise<boolean> {
  return download(`${PACKAGE_PATH}${wanted.sha256}`, options, async (answer) => {
    if (answer.statusCode === 503) return false;
    if (answer.statusCode !== 200) {
      throw refused(`the orchestrator answered the download with HTTP status ${answer.statusCode}`);
    }
    await store(answer, path, wanted);
    return true;
  });
}

async function store(answer: IncomingMessage, path: string, { size, sha256 }: WantedRelease): Promise<void> {
  const hash = createHash('sha256');
  let received = 0;
  const counted = async function* (pieces: AsyncIterable<Buffer>) {
    for await (const piece of pieces) {
      received += piece.length;
      if (received > size) throw refused(`the release is larger than the ${size} bytes that were announced`);
      hash.update(piece);
      yield piece;
    }
  };
  await pipeline(answer, counted, createWriteStream(path, { mode: 0o600 }));
  if (received !== size) throw refused(`the download ended after ${received} of ${size} bytes`);
  if (hash.digest('hex') !== sha256) throw refused('the download has another SHA-256 than was announced');
}
