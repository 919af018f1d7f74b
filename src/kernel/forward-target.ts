/** Targets of forwards: what an agent connects to. */
import * as Type from 'typebox';
import { type CopyTarget, CopyTargetSchema } from './copy-target.js';
import { closed } from './schema.js';

/** Kinds of sessions with targets. The agent permits each by itself. */
export const FORWARD_KINDS = ['forward', 'ssh-proxy', 'copy'] as const;
export type ForwardKind = (typeof FORWARD_KINDS)[number];

/** Maximum bytes of the path of a Unix socket (`sun_path` without its end). */
export const SOCKET_PATH_MAX = 107;

const TcpTargetSchema = closed({
  host: Type.String({
    pattern: '^[A-Za-z0-9_:][A-Za-z0-9._:%-]{0,254}$',
    description: 'Name or address; the agent resolves it',
  }),
  port: Type.Integer({ minimum: 1, maximum: 65_535, description: 'TCP port' }),
});

const UnixTargetSchema = closed({
  path: Type.String({
    pattern: '^/[^\\u0000-\\u001f\\u007f]*$',
    maxLength: SOCKET_PATH_MAX,
    description: 'Absolute path of a Unix socket of the machine',
  }),
});

export const ForwardTargetSchema = Type.Union([TcpTargetSchema, UnixTargetSchema]);
export type ForwardTarget = Type.Static<typeof ForwardTargetSchema>;

/** What one connection of a session leads to: a target of the network, or files of the machine. */
export const SessionTargetSchema = Type.Union([ForwardTargetSchema, CopyTargetSchema]);
export type SessionTarget = ForwardTarget | CopyTarget;

/** Returns the target as `HOST:PORT`, with brackets around an IPv6 address, or as a path. */
export function targetText(target: SessionTarget): string {
  if ('copy' in target) return target.at;
  if ('path' in target) return target.path;
  return target.host.includes(':') ? `[${target.host}]:${target.port}` : `${target.host}:${target.port}`;
}

const ENTRY = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5}|\*)$/;

/**
 * Parses `HOST:PORT`; returns null for anything else. An IPv6 address stands in brackets, and `*` is accepted for both.
 */
export function parseHostPort(text: string): { readonly host: string; readonly port: number | '*' } | null {
  const [, v6, name, port = ''] = ENTRY.exec(text) ?? [];
  const host = v6 ?? name;
  if (host === undefined) return null;
  if (port === '*') return { host, port };
  const number = Number(port);
  return number >= 1 && number <= 65_535 ? { host, port: number } : null;
}
