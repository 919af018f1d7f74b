/** The answers that may be compressed. */
import { ErrorSchema, FieldChangeSchema, OutputSchema, ResourceResultSchema } from '../resources/result.js';
import { AuditEventSchema } from './audit.js';
import { ChannelSchema } from './channels.js';
import { NotificationSchema } from './notifications.js';
import type { RouteSpec } from './route.js';
import { TerminalMatchSchema } from './terminal.js';

/**
 * Members that may hold a secret: contents of files and output of scripts, which failures quote too, lines of recordings, commands
 * in the audit log, and tokens in the addresses of channels. Known secrets are masked there, but the orchestrator does not know all.
 */
const CONFIDENTIAL: ReadonlySet<unknown> = new Set([
  ErrorSchema.properties.message,
  FieldChangeSchema.properties.before,
  ResourceResultSchema.properties.diff,
  OutputSchema.properties.stdout,
  TerminalMatchSchema.properties.line,
  AuditEventSchema.properties.metadata,
  ChannelSchema.properties.config,
  NotificationSchema.properties.summary,
]);

/** Media types that shrink, besides JSON. */
const HTML = /^text\/html\b/;

/**
 * Returns true for a route whose whole answers may be compressed.
 *
 * The length of a compressed answer tells how much its parts resemble each other. An attacker who sees lengths on the network,
 * and can place text beside a secret, such as a fact of a machine or a name, could find the secret by guesses (BREACH). So
 * these answers stay as they are:
 * - session tokens, enrolment tokens, and tickets of terminals and forwards: answers of logins, and of routes with `tls` or
 *   `secretAnswer`;
 * - answers with a member of `CONFIDENTIAL`: plans, applies, drift, operations, recordings, channels, notifications and audit
 *   events, most of them beside text that a machine has sent.
 * Streams are sent event by event, so they are never compressed either.
 */
export function isCompressible({ access, answers, events, mediaType, method, secretAnswer, tls }: RouteSpec): boolean {
  const isLogin = access === 'public' && method !== 'GET';
  const isText = mediaType === undefined || HTML.test(mediaType);
  if (secretAnswer || tls || events || isLogin || !isText) return false;
  return !Object.values(answers).some(holdsConfidential);
}

function holdsConfidential(schema: unknown): boolean {
  if (typeof schema !== 'object' || schema === null) return false;
  return CONFIDENTIAL.has(schema) || Object.values(schema).some(holdsConfidential);
}
