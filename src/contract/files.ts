/** Files beside modules, stored once by their SHA-256 while a module or an apply names them. */
import * as Type from 'typebox';
import { closed } from '../kernel/schema.js';
import { MAX_SOURCE_BYTES } from '../resources/host.js';
import { route } from './route.js';

/** Bytes of each part of a file except the last one. */
export const FILE_PART_BYTES = 1024 * 1024;

const Sha256 = Type.String({ pattern: '^[0-9a-f]{64}$', description: 'SHA-256 of the file, in hex' });
const params = closed({
  sha256: Type.String({ minLength: 1, maxLength: 64, description: 'SHA-256 of the file, in hex' }),
});

/** Member of a module: the files beside it. */
export const ModuleFilesSchema = Type.Record(Type.String(), Sha256, {
  description: 'SHA-256 of the files beside the module, by their paths in it',
});

export const StoredFileSchema = closed({
  sha256: Sha256,
  size: Type.Integer({ description: 'Bytes' }),
  received: Type.Integer({ description: 'Bytes that are stored; the next part begins here, until it equals `size`' }),
});
export type StoredFile = Type.Static<typeof StoredFileSchema>;

const FilePartSchema = closed({
  size: Type.Integer({ description: 'Bytes of the whole file' }),
  offset: Type.Integer({ description: 'Position of the first byte of the part' }),
  data: Type.String({ description: 'The part in base64' }),
});

export const fileRoutes = {
  uploadFile: route({
    id: 'uploadFile',
    summary:
      'Upload a part of a file beside a module; a part that does not begin at `received` is not stored, so an upload continues after a cut',
    tag: 'modules',
    method: 'PUT',
    path: '/files/{sha256}',
    access: 'modules',
    grants: 'shared',
    params,
    body: closed({
      size: Type.Integer({ minimum: 0, maximum: MAX_SOURCE_BYTES, description: 'Bytes of the whole file' }),
      offset: Type.Integer({ minimum: 0, description: 'Position of the first byte of the part' }),
      data: Type.String({
        description: `The part in base64: ${FILE_PART_BYTES} bytes, fewer only at the end of the file, none to ask how much is stored`,
      }),
    }),
    bodyBytes: 2 * FILE_PART_BYTES,
    answers: { 200: StoredFileSchema },
    faults: ['file_damaged'],
  }),
  getFile: route({
    id: 'getFile',
    summary: 'A part of a file beside a module',
    tag: 'modules',
    method: 'GET',
    path: '/files/{sha256}',
    access: 'read',
    grants: 'shared',
    params,
    query: closed({ offset: Type.Optional(Type.Integer({ minimum: 0, description: 'First byte [default: 0]' })) }),
    answers: { 200: FilePartSchema },
    faults: ['file_not_found'],
  }),
} as const;
