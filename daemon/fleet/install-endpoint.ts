import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { messageOf } from '../../src/kernel/fault.js';
import type { NodeId, PublicKeyHex } from '../../src/kernel/ids.js';
import type { Core } from '../core/core.js';
import { findAgent } from './agent-store.js';
import type { InstallPackages } from './install-packages.js';
import { installScript, placeOfHeader } from './install-script.js';
import { pinOf } from './own-pin.js';
import { downloadToken } from './token-redemption.js';

/** The files beside modules that agents download. */
export interface OfferedFiles {
  /** Opens a complete file by its SHA-256 in hex; null if there is none. */
  open(sha256: string): Promise<{ readonly size: number; read(from: number): AsyncIterable<Buffer> } | null>;
}

interface InstallEndpointOptions extends Pick<Core, 'clock' | 'db' | 'logger'> {
  /** Public key of this orchestrator. */
  readonly publicKey: PublicKeyHex;
  readonly packages: InstallPackages;
  readonly files: OfferedFiles;
  readonly limits?: Partial<DownloadLimits>;
}

/** A peer on the agent port that does not speak the link. */
export interface Visitor {
  /** Node of the key that its certificate proved; null without one. */
  readonly nodeId: NodeId | null;
  readonly remoteAddress: string;
  /** Called once when the visitor has shown a right to download. */
  readonly proved: () => void;
}

interface DownloadLimits {
  /** Packages and files sent at once; further requests get 503. */
  readonly downloads: number;
  /** Those sent at once to the holders of one token, or to one agent. */
  readonly each: number;
  /** Milliseconds without progress, and for a whole download. */
  readonly stalled: number;
  readonly total: number;
}

const LIMITS: DownloadLimits = { downloads: 16, each: 8, stalled: 60_000, total: 30 * 60_000 };
/** Seconds after which a machine that found all places taken asks again. */
const RETRY_AFTER = 20;

const PACKAGE = /^\/packages\/([0-9a-f]{64})$/;
const FILE = /^\/files\/([0-9a-f]{64})$/;
/** The only range that agents ask for: the rest of a file. */
const RANGE = /^bytes=(\d{1,12})-$/;

export class InstallEndpoint {
  private readonly options: InstallEndpointOptions;
  private readonly limits: DownloadLimits;
  /** Downloads in progress, by token or node ID. */
  private readonly downloads: string[] = [];

  constructor(options: InstallEndpointOptions) {
    this.options = options;
    this.limits = { ...LIMITS, ...options.limits };
  }

  /** Answers a request; never throws. */
  async answer(request: IncomingMessage, response: ServerResponse, visitor: Visitor): Promise<void> {
    const { logger } = this.options;
    try {
      await this.respond(request, response, visitor);
    } catch (error) {
      logger.warn('a download from the agent port failed', {
        address: visitor.remoteAddress,
        path: pathOf(request),
        reason: messageOf(error),
      });
      if (response.headersSent) response.destroy();
      else refuse(response, 500);
    }
  }

  private async respond(request: IncomingMessage, response: ServerResponse, visitor: Visitor): Promise<void> {
    const path = pathOf(request);
    const sha256 = PACKAGE.exec(path)?.[1];
    const file = FILE.exec(path)?.[1];
    const isKnown = sha256 !== undefined || file !== undefined || path === '/install.sh';
    if (request.method !== 'GET' || !isKnown) return refuse(response, 404);
    if (hasBody(request)) return refuse(response, 400);
    const bearer = await this.bearerOf(request, visitor);
    // Agents have no use for the installer, which contains a token. Only agents may have files beside modules.
    if (bearer === null || (path === '/install.sh' && bearer.token === null)) return refuse(response, 401);
    if (file !== undefined && bearer.token !== null) return refuse(response, 401);
    visitor.proved();
    if (file !== undefined) return this.sendFile(request, response, { sha256: file, visitor, who: bearer.who });
    if (sha256 !== undefined) return this.sendPackage(response, { sha256, visitor, who: bearer.who });
    const place = placeOfHeader(request.headers.host);
    return place === null || bearer.token === null
      ? refuse(response, 400)
      : this.sendScript(response, { place, token: bearer.token, visitor, who: bearer.who });
  }

  /** Returns how the peer has shown its right to download; null without it. */
  private async bearerOf(
    request: IncomingMessage,
    { nodeId }: Visitor,
  ): Promise<{ readonly token: string | null; readonly who: Readonly<Record<string, string>> } | null> {
    const { db, clock } = this.options;
    const token = tokenOf(request.headers.authorization);
    if (token !== null) {
      const row = await downloadToken(db, token, clock.now());
      return row === null ? null : { token, who: { token_id: row.token_id } };
    }
    if (nodeId === null) return null;
    return (await findAgent(db, nodeId))?.status === 'approved' ? { token: null, who: { node_id: nodeId } } : null;
  }

  private async sendScript(
    response: ServerResponse,
    { place, token, visitor, who }: Sending & { readonly place: string; readonly token: string },
  ): Promise<void> {
    const { packages, publicKey, logger } = this.options;
    const script = installScript({
      place,
      pin: pinOf(publicKey),
      token,
      packages: await packages.newest(),
      releaseKey: packages.releaseKey(),
    });
    const body = Buffer.from(script);
    response.writeHead(200, {
      'Content-Type': 'text/x-shellscript; charset=utf-8',
      'Content-Length': body.length,
      'Cache-Control': 'no-store',
      Connection: 'close',
    });
    response.end(body);
    logger.info('a machine downloads the installer', { address: visitor.remoteAddress, ...who });
  }

  private async sendPackage(
    response: ServerResponse,
    { sha256, visitor, who }: Sending & { readonly sha256: string },
  ): Promise<void> {
    const { packages, logger } = this.options;
    await this.inPlace(response, who, async () => {
      const opened = await packages.open(sha256);
      if (opened === null) return refuse(response, 404);
      logger.info('a machine downloads a package', { address: visitor.remoteAddress, sha256, ...who });
      response.writeHead(200, {
        'Content-Type': 'application/gzip',
        'Content-Length': opened.size,
        Connection: 'close',
      });
      await pipeline(opened.handle.createReadStream({ start: 0, end: opened.size - 1 }), response);
    });
  }

  /** Sends a file beside a module, or the rest of it. */
  private async sendFile(
    request: IncomingMessage,
    response: ServerResponse,
    { sha256, visitor, who }: Sending & { readonly sha256: string },
  ): Promise<void> {
    const { files, logger } = this.options;
    await this.inPlace(response, who, async () => {
      const opened = await files.open(sha256);
      if (opened === null) return refuse(response, 404);
      const { size } = opened;
      const range = RANGE.exec(request.headers.range ?? '')?.[1];
      const from = Number(range ?? 0);
      if (from > size) return refuse(response, 416, { 'Content-Range': `bytes */${size}` });
      logger.debug('a machine downloads a file', { address: visitor.remoteAddress, sha256, from, ...who });
      // The rest of a complete file is empty, which no range can say.
      response.writeHead(range === undefined ? 200 : 206, {
        'Content-Type': 'application/octet-stream',
        'Content-Length': size - from,
        ...(range !== undefined && from < size && { 'Content-Range': `bytes ${from}-${size - 1}/${size}` }),
        Connection: 'close',
      });
      await pipeline(opened.read(from), response);
    });
  }

  /** Runs `send` in one of the places for downloads; without a free one, the peer has to ask again. */
  private async inPlace(response: ServerResponse, who: Sending['who'], send: () => Promise<void>): Promise<void> {
    const [downloader = ''] = Object.values(who);
    const ofOne = this.downloads.filter((one) => one === downloader).length;
    if (this.downloads.length >= this.limits.downloads || ofOne >= this.limits.each) {
      return refuse(response, 503, { 'Retry-After': String(RETRY_AFTER) });
    }
    this.downloads.push(downloader);
    const end = setTimeout(() => response.destroy(), this.limits.total);
    // A peer that reads too slowly gives its place back.
    response.socket?.setTimeout(this.limits.stalled, () => response.destroy());
    try {
      await send();
    } finally {
      clearTimeout(end);
      this.downloads.splice(this.downloads.indexOf(downloader), 1);
    }
  }
}

interface Sending {
  readonly visitor: Visitor;
  /** Who downloads, for the log. */
  readonly who: Readonly<Record<string, string>>;
}

/** Returns the path of a request for the log and for comparison; nothing secret is accepted in it. */
const pathOf = (request: IncomingMessage): string => request.url ?? '';

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';

/** Returns the token of a header: as a bearer, or as the password of `orch`, which wget can send without showing it to other users. */
function tokenOf(header: string | undefined): string | null {
  const [, bearer, basic] = /^(?:Bearer ([\w.-]{1,256})|Basic ([A-Za-z0-9+/=]{1,512}))$/.exec(header ?? '') ?? [];
  if (bearer !== undefined) return bearer;
  if (basic === undefined) return null;
  return /^orch:([\w.-]{1,256})$/.exec(Buffer.from(basic, 'base64').toString('latin1'))?.[1] ?? null;
}

function refuse(response: ServerResponse, status: number, headers: Readonly<Record<string, string>> = {}): void {
  const challenge = status === 401 ? { 'WWW-Authenticate': 'Bearer' } : {};
  response.writeHead(status, { ...challenge, ...headers, Connection: 'close', 'Content-Length': 0 }).end();
}
