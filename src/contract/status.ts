/** Health, and documents about the API. */
import * as Type from 'typebox';
import { closed } from '../kernel/schema.js';
import { route } from './route.js';
import { PublicKey } from './shapes.js';

/** Milliseconds before its end from which the certificate of the API counts as expiring. */
export const CERTIFICATE_SOON_MS = 14 * 24 * 60 * 60 * 1000;

export const StatusSchema = closed({
  status: Type.Enum(['ok', 'degraded'], { description: 'degraded: something needs attention, as `reasons` says' }),
  protocol_version: Type.Integer({ description: 'Version of the agent link' }),
  public_key: PublicKey,
  version: Type.String({ description: 'Version of the orchestrator' }),
  certificate_expires_at: Type.Optional(
    Type.Integer({ description: 'Unix time at which the certificate of the API ends; absent without TLS' }),
  ),
  reasons: Type.Array(
    closed({
      code: Type.Enum(
        [
          'disk_low',
          'clock_jumped',
          'times_ahead',
          'store_unreachable',
          'store_check_failed',
          'drift_overdue',
          'certificate_expired',
        ],
        { description: 'Kind of the reason' },
      ),
      detail: Type.String({ description: 'The reason and the next step' }),
    }),
    { description: 'Reasons of a degraded state; empty otherwise' },
  ),
});
export type Status = Type.Static<typeof StatusSchema>;

export const JsonDocumentSchema = Type.Record(Type.String(), Type.Unknown());

export const statusRoutes = {
  getStatus: route({
    id: 'getStatus',
    summary: 'Protocol version and health',
    tag: 'status',
    method: 'GET',
    path: '/status',
    access: 'public',
    answers: { 200: StatusSchema },
    faults: [],
  }),
  getOpenApi: route({
    id: 'getOpenApi',
    summary: 'This description of the API',
    tag: 'status',
    method: 'GET',
    path: '/openapi.json',
    access: 'public',
    answers: { 200: JsonDocumentSchema },
    faults: [],
  }),
  getApiPage: route({
    id: 'getApiPage',
    summary: 'This description of the API as a page for people',
    tag: 'status',
    method: 'GET',
    path: '/docs',
    access: 'public',
    answers: { 200: Type.String() },
    mediaType: 'text/html; charset=utf-8',
    headers: { 'Content-Security-Policy': 'Allows the style and the script of the page, and no request' },
    faults: [],
  }),
  getModuleSchema: route({
    id: 'getModuleSchema',
    summary: 'JSON Schema of a module, for editors',
    tag: 'status',
    method: 'GET',
    path: '/schemas/module/v1.json',
    access: 'public',
    answers: { 200: JsonDocumentSchema },
    faults: [],
  }),
} as const;
