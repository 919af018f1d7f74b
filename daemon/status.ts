/** Health of the orchestrator, and the documents that describe the API. */
import { createHash } from 'node:crypto';
import { statfs } from 'node:fs/promises';
import { apiPage, apiPageDocument, standaloneStyle } from '../src/contract/api-page.js';
import type { Status, statusRoutes } from '../src/contract/status.js';
import type { JsonObject } from '../src/kernel/json.js';
import { PROTOCOL_VERSION, VERSION } from '../src/kernel/version.js';
import type { Core } from './core/core.js';
import { StaticText } from './http/compression.js';
import type { HandlersFor } from './http/handler.js';

interface StatusOptions {
  /** Returns the current health. */
  health(): Promise<Status>;
  /** Returns the OpenAPI document; called once, at the first request. */
  openApi(): JsonObject;
  /** Returns the JSON Schema of a module; called once, at the first request. */
  moduleSchema(): Readonly<Record<string, unknown>>;
}

export function statusHandlers(options: StatusOptions): HandlersFor<typeof statusRoutes> {
  const openApi = once(options.openApi);
  const openApiText = once(() => new StaticText<JsonObject>(JSON.stringify(openApi())));
  const moduleSchema = once(() => new StaticText<JsonObject>(JSON.stringify(options.moduleSchema())));
  const page = once(() => renderApiPage(openApi()));
  return {
    getStatus: async () => ({ status: 200, body: await options.health() }),
    getOpenApi: async () => ({ status: 200, body: openApiText() }),
    getApiPage: async () => ({ status: 200, ...page() }),
    getModuleSchema: async () => ({ status: 200, body: moduleSchema() }),
  };
}

/** Returns the page of the API and the policy with which a browser runs only its style and script, and requests nothing. */
function renderApiPage(openApi: JsonObject) {
  const page = apiPage(openApi);
  const policy = [
    "default-src 'none'",
    `style-src '${hashSource(standaloneStyle(page.style))}'`,
    `script-src '${hashSource(page.script)}'`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
  return { body: new StaticText(apiPageDocument(page)), headers: { 'content-security-policy': policy } };
}

const hashSource = (text: string): string => `sha256-${createHash('sha256').update(text).digest('base64')}`;

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
  /** Returns when the certificate of the API ends, in Unix milliseconds; null without TLS. */
  readonly certificateExpiresAt: () => number | null;
}

/** Creates the check of the current health. The disk is looked at once in a while. */
export function healthCheck(options: HealthOptions): () => Promise<Status> {
  const { dataDir, publicKey, problems, certificateExpiresAt, clock } = options;
  const disk = reused(clock, DISK_AGE_MS, () => diskProblems(dataDir));
  return async () => {
    const reasons = [...(await disk()), ...problems()];
    const ends = certificateExpiresAt();
    return {
      status: reasons.length > 0 ? 'degraded' : 'ok',
      protocol_version: PROTOCOL_VERSION,
      public_key: publicKey,
      version: VERSION,
      ...(ends === null ? {} : { certificate_expires_at: Math.floor(ends / 1000) }),
      reasons,
    };
  };
}

/** Calls `measure` again only when its last result is older than `ageMs`. */
function reused<T>(clock: Core['clock'], ageMs: number, measure: () => Promise<T>): () => Promise<T> {
  let last: { readonly value: Promise<T>; readonly at: number } | undefined;
  return () => {
    const now = clock.monotonic();
    if (last === undefined || now - last.at >= ageMs) last = { value: measure(), at: now };
    return last.value;
  };
}

async function diskProblems(dataDir: string): Promise<readonly Problem[]> {
  const { bavail, bsize } = await statfs(dataDir);
  const free = bavail * bsize;
  if (free >= ENOUGH_DISK) return [];
  const detail = `${Math.floor(free / 1024 ** 2)} MiB are free on the disk of the data directory, less than 1 GiB`;
  return [{ code: 'disk_low', detail }];
}
