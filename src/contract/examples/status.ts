/** Recorded by `test/api/examples.test.ts`: examples of the operations about status. */
import type { Example } from '../route.js';

export const examples: Readonly<Record<string, Example>> = {
  getStatus: {
    status: 200,
    answer: {
      status: 'ok',
      protocol_version: 2,
      public_key: '7ade7dd810ed9e097a9693f8c940521d332a13610f88b92ad79dc0d978e86fe7',
      version: '0.1.0',
      certificate_expires_at: 253402300799,
      reasons: [],
    },
  },
  getOpenApi: {
    status: 200,
    answer: {
      openapi: '3.1.0',
    },
  },
  getApiPage: {
    status: 200,
    answer:
      '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>orch management API 0.1.0</title>\n<style>:root {\n  color-scheme: light dark;\n  --text: #1f2328; --muted: #59636e; --line: #d1d9e0; --page: #ffffff; --panel: #f6f8fa; --link: #0550ae; --accent: #0969da;\n}\n@media (prefers-color-scheme: dark) {\n  :root { --text: #',
  },
  getModuleSchema: {
    status: 200,
    answer: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $id: 'urn:orch:schema:module:v1',
      type: 'object',
      additionalProperties: false,
      title: 'Module',
      description: 'A declarative list of resources',
    },
  },
};
