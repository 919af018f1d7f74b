/** The page of the API shows the whole OpenAPI document, and needs nothing from elsewhere. */

import * as Type from 'typebox';
import { describe, expect, it } from 'vitest';
import { apiPage, apiPageDocument } from '../../src/contract/api-page.js';
import { CONTRACT } from '../../src/contract/contract.js';
import { openApiDocument } from '../../src/contract/openapi.js';
import { route } from '../../src/contract/route.js';
import { WEBHOOK_HEADERS } from '../../src/contract/webhooks.js';

const page = apiPage(openApiDocument(CONTRACT, { version: '1.2.3' }));
const html = apiPageDocument(page);
const ids = [...html.matchAll(/ id="([^"]+)"/g)].map(([, id = '']) => id);

/** Returns the entry of an operation or a schema. */
const entryOf = (id: string, of = html): string =>
  of.split('<details ').find((part) => part.includes(`id="${id}"`)) ?? '';

describe('the page of the API', () => {
  it('has an entry for every route, with its parameters and the codes of its errors', () => {
    for (const route of Object.values(CONTRACT)) {
      const entry = entryOf(route.id);
      expect(entry).toContain(`/api/v1${route.path}</code>`);
      const { params, query, faults }: { params?: object; query?: object; faults: readonly string[] } = route;
      const names = [params, query].flatMap((schema) =>
        Object.keys((schema as Type.TObject | undefined)?.properties ?? {}),
      );
      expect(names.filter((name) => !entry.includes(`<code>${name}</code>`))).toEqual([]);
      expect(faults.filter((code) => !entry.includes(`<code>${code}</code>`))).toEqual([]);
    }
  });

  it('has an entry for the request of a webhook, with its headers and the members of its message', () => {
    const entry = entryOf('receiveNotification');
    expect(page.body).toContain('<a href="#webhooks">webhooks</a>');
    for (const name of Object.keys(WEBHOOK_HEADERS)) expect(entry).toContain(`<code>${name}</code>`);
    for (const name of ['event_type', 'severity', 'metadata']) expect(entry).toContain(`<code>${name}</code>`);
    expect(entry).toContain('the channel is disabled until it is changed or tested');
  });

  it('names no anchor twice, and links only to anchors that are there', () => {
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
    const targets = [...html.matchAll(/href="([^"]+)"/g)].map(([, target = '']) => target);
    expect(targets.length).toBeGreaterThan(100);
    expect(targets.filter((target) => !target.startsWith('#') || !ids.includes(target.slice(1)))).toEqual([]);
  });

  it('loads nothing', () => {
    expect(html).not.toMatch(/<(link|img|iframe|script src|object|embed)|@import|url\(|(src|href)="https?:/);
  });

  it('shows the members of a body with type, rule and meaning', () => {
    const tiny = route({
      id: 'tiny',
      summary: 'A route with <marks> & `code`',
      tag: 'test',
      method: 'POST',
      path: '/tiny',
      access: 'admin',
      body: Type.Object({
        name: Type.String({ maxLength: 5, description: 'Name of it' }),
        mode: Type.Optional(Type.Enum(['on', 'off'])),
        inner: Type.Array(Type.Object({ deep: Type.Boolean() })),
      }),
      answers: { 204: null },
      faults: [],
    });
    const text = apiPageDocument(apiPage(openApiDocument({ tiny }, { version: '1' })));
    expect(entryOf('tiny', text)).toContain('A route with &lt;marks&gt; &amp; <code>code</code>');
    // The operation shows the members as its schema does.
    const schema = entryOf('schema-TinyRequest', text);
    expect(entryOf('tiny', text)).toContain('<code>deep</code>');
    expect(schema).toContain(
      '<li><code>name</code> <span class="api-type">string <span class="api-rule">(at most 5 characters)</span></span>' +
        ' <span class="api-required">required</span><span class="api-note">Name of it</span></li>',
    );
    expect(schema).toContain(
      '<code>mode</code> <span class="api-type"><code>&quot;on&quot;</code> | <code>&quot;off&quot;</code></span></li>',
    );
    expect(schema).toMatch(/<code>inner<\/code>.*array of object.*<ul class="api-members"><li><code>deep<\/code>/);
  });
});
