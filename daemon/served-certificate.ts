/**
 * The certificate that the API serves. It is read again when its files change. Its expiry is watched, because a failed
 * renewal otherwise shows only when clients refuse the certificate.
 */
import { X509Certificate } from 'node:crypto';
import { statSync } from 'node:fs';
import { CERTIFICATE_SOON_MS } from '../src/contract/status.js';
import { spkiFingerprint } from '../src/identity/fingerprint.js';
import { messageOf } from '../src/kernel/fault.js';
import type { Service } from '../src/kernel/service.js';
import { type ApiCertificate, apiCertificate } from './api-certificate.js';
import type { Core } from './core/core.js';
import { SYSTEM } from './core/domain-event.js';
import { getMeta, setMeta } from './database/meta.js';
import type { Problem } from './status.js';

const DAY = 24 * 60 * 60 * 1000;
/** Milliseconds between two looks at the files and the clock. */
const EVERY = 5_000;
/** Entry of `meta`: the stage and fingerprint of the last event. */
const NOTED = 'api_certificate_noted';

type ServedCertificateOptions = Pick<Core, 'clock' | 'db' | 'logger' | 'settings' | 'uow'>;

export class ServedCertificate implements Service {
  readonly name = 'certificate of the API';
  private readonly options: ServedCertificateOptions;
  private readonly listeners: ((certificate: ApiCertificate) => void)[] = [];
  private current: ApiCertificate | null;
  /** What was read from the certificate last: `GET /status` asks for it each time, and parsing takes a millisecond. */
  private known: { readonly cert: string; readonly expiresAt: number; readonly spki: Uint8Array } | null = null;
  private files: string;
  private timer: NodeJS.Timeout | undefined;
  private looking: Promise<void> = Promise.resolve();

  constructor(first: ApiCertificate | null, options: ServedCertificateOptions) {
    this.options = options;
    this.current = first;
    this.files = this.stateOfFiles();
  }

  /** Certificate and key now; null without TLS. */
  get pair(): ApiCertificate | null {
    return this.current;
  }

  /** SHA-256 of the SPKI of the certificate that clients see, which may be that of a proxy; null over plain HTTP. */
  spki(): Uint8Array | null {
    const { api_spki: ofProxy } = this.options.settings();
    if (ofProxy !== '') return Buffer.from(ofProxy, 'hex');
    return this.parsed()?.spki ?? null;
  }

  /** Unix milliseconds at which the certificate ends; null without TLS. */
  expiresAt(): number | null {
    return this.parsed()?.expiresAt ?? null;
  }

  private parsed() {
    if (this.current === null) return null;
    const { cert } = this.current;
    if (this.known?.cert === cert) return this.known;
    const certificate = new X509Certificate(cert);
    const spki = Buffer.from(spkiFingerprint(certificate), 'hex');
    this.known = { cert, expiresAt: Date.parse(certificate.validTo), spki };
    return this.known;
  }

  /** Returns the reason why the orchestrator is degraded, if the certificate has ended. */
  problems(): readonly Problem[] {
    const end = this.end();
    return end?.stage === 'expired' ? [{ code: 'certificate_expired', detail: end.sentence }] : [];
  }

  /** Calls the listener with each certificate that takes the place of the one before. */
  onRenewed(listener: (certificate: ApiCertificate) => void): void {
    this.listeners.push(listener);
  }

  async start(): Promise<void> {
    const { logger, settings } = this.options;
    const { advertised_host: host } = settings();
    if (this.current !== null && host.includes('_')) {
      logger.warn('some TLS clients accept no host name with an underscore', { advertised_host: host });
    }
    await this.look();
    this.timer = setInterval(() => this.look(), EVERY);
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.looking;
  }

  /** Takes changed files over for new connections, and reports the end of the certificate. Never rejects. */
  look(): Promise<void> {
    this.renew();
    this.looking = this.looking.then(() => this.note());
    return this.looking;
  }

  private renew(): void {
    const { logger, settings } = this.options;
    const { tls_cert: file, data_dir: dataDir } = settings();
    const files = this.stateOfFiles();
    if (this.current === null || file === '' || files === this.files) return;
    this.files = files;
    try {
      const renewed = apiCertificate(settings(), dataDir);
      if (renewed === null || (renewed.cert === this.current.cert && renewed.key === this.current.key)) return;
      for (const listener of this.listeners) listener(renewed);
      this.current = renewed;
      logger.info('the certificate of the API was read again', {
        tls_cert: file,
        tls_fingerprint: spkiFingerprint(renewed.cert),
        ends: new X509Certificate(renewed.cert).validTo,
      });
    } catch (error) {
      // Between the two files of a renewal they do not fit each other; the second one is another change.
      logger.warn('the changed certificate of the API was not taken over, the old one stays', {
        reason: messageOf(error),
      });
    }
  }

  /** Returns a text that changes with either file. */
  private stateOfFiles(): string {
    const { tls_cert: cert, tls_key: key } = this.options.settings();
    const states = [cert, key].map((path) => {
      const found = path === '' ? undefined : statSync(path, { throwIfNoEntry: false });
      return found === undefined ? '' : `${found.ino} ${found.size} ${found.mtimeMs} ${found.ctimeMs}`;
    });
    return states.join('/');
  }

  private end(): { readonly stage: 'expired' | 'expiring'; readonly sentence: string } | null {
    const at = this.expiresAt();
    const left = at === null ? Number.POSITIVE_INFINITY : at - this.options.clock.now();
    if (at === null || left > CERTIFICATE_SOON_MS) return null;
    const day = new Date(at).toISOString().replace('.000Z', 'Z');
    if (left <= 0) return { stage: 'expired', sentence: `the certificate of the API ended at ${day}` };
    const days = Math.floor(left / DAY);
    const rest = days === 0 ? 'in less than a day' : days === 1 ? 'in one day' : `in ${days} days`;
    return { stage: 'expiring', sentence: `the certificate of the API ends ${rest}, at ${day}` };
  }

  /** Logs and audits each stage of a certificate once. */
  private async note(): Promise<void> {
    const end = this.end();
    if (end === null || this.current === null) return;
    const { db, logger, settings, uow } = this.options;
    const { stage, sentence } = end;
    const { tls_cert: file } = settings();
    const noted = `${stage} ${new X509Certificate(this.current.cert).fingerprint256}`;
    if (noted !== this.warned)
      logger.warn(sentence, { tls_cert: file, hint: 'renew it, and put the new files in its place' });
    this.warned = noted;
    try {
      if ((await getMeta(db, NOTED)) === noted) return;
      await uow.write(async (tx, emit) => {
        await setMeta(tx, NOTED, noted);
        emit({
          type: `orchestrator.certificate_${stage}`,
          actor: SYSTEM,
          target: SYSTEM,
          summary: `${sentence[0]?.toUpperCase()}${sentence.slice(1)}`,
          metadata: { tls_cert: file, ends_at: Math.floor((this.expiresAt() ?? 0) / 1000) },
        });
      });
    } catch (error) {
      logger.warn('the end of the certificate was not audited yet', { reason: messageOf(error) });
    }
  }

  /** Stage and fingerprint of the last warning of this process. */
  private warned = '';
}
