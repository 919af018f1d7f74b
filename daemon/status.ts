/** Health of the orchestrator, and the documents that describe the API. */
import { statfs } from 'node:fs/promises';
import type { Status, statusRoutes } from '../src/contract/status.js';
import { PROTOCOL_VERSION, VERSION } from '../src/kernel/version.js';
import type { Core } from './core/core.js';
import type { HandlersFor } from './http/handler.js';

interface StatusOptions {
  /** Returns the current health. */
  health(): Promise<Status>;
  /** Returns the OpenAPI document; called once, at the first request. */
  openApi(): Readonly<Record<string, unknown>>;
  /** Returns the JSON Schema of a module; called once, at the first request. */
  moduleSchema(): Readonly<Record<string, unknown>>;
}

export function statusHandlers(options: StatusOptions): HandlersFor<typeof statusRoutes> {
  const openApi = once(options.openApi);
  const moduleSchema = once(options.moduleSchema);
  return {
    getStatus: async () => ({ status: 200, body: await options.health() }),
    getOpenApi: async () => ({ status: 200, body: openApi() }),
    getModuleSchema: async () => ({ status: 200, body: moduleSchema() }),
  };
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** Free disk space in bytes below which the status is degraded. */
const ENOUGH_DISK = 1024 ** 3;
/** Milliseconds for which a measurement of the disk is reused. */
const DISK_AGE_MS = 1_000;

/** A reason why the orchestrator is degraded. Every client that reaches the API may read it. */
export type Problem = Status['reasons'][number];

interface HealthOptions extends Pick<Core, 'clock'> {
  readonly dataDir: string;
  readonly publicKey: string;
  readonly problems: () => readonly Problem[];
}

/** Creates the check of the current health. The disk is measured at most once a second. */
export function healthCheck({ dataDir, publicKey, problems, clock }: HealthOptions): () => Promise<Status> {
  let disk: { readonly problems: Promise<readonly Problem[]>; readonly at: number } | undefined;
  return async () => {
    const now = clock.monotonic();
    if (disk === undefined || now - disk.at >= DISK_AGE_MS) disk = { problems: diskProblems(dataDir), at: now };
    const reasons = [...(await disk.problems), ...problems()];
    const status = reasons.length > 0 ? 'degraded' : 'ok';
    return { status, protocol_version: PROTOCOL_VERSION, public_key: publicKey, version: VERSION, reasons };
  };
}

async function diskProblems(dataDir: string): Promise<readonly Problem[]> {
  const { bavail, bsize } = await statfs(dataDir);
  const free = bavail * bsize;
  if (free >= ENOUGH_DISK) return [];
  const detail = `${Math.floor(free / 1024 ** 2)} MiB are free on the disk of the data directory, less than 1 GiB`;
  return [{ code: 'disk_low', detail }];
}
