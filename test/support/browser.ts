/** A headless Chromium that tests drive over its debugging protocol. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { WebSocket } from 'ws';

/** The program, which Debian's package of the same name installs. */
export const BROWSER = 'chromium';

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--remote-debugging-port=0',
];

type Result = Readonly<Record<string, unknown>>;

interface Answer {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Result;
  readonly result?: Result;
  readonly error?: { readonly message: string };
}

/** One tab of a browser of its own, which ends with the test. */
export class Page {
  /** Addresses that the tab has requested. */
  readonly requested: string[] = [];
  private readonly connection: Connection;
  private readonly sessionId: string;

  private constructor(connection: Connection, sessionId: string) {
    this.connection = connection;
    this.sessionId = sessionId;
    connection.onEvent = ({ method, params }) => {
      if (method !== 'Network.requestWillBeSent') return;
      const { url } = (params?.request ?? {}) as { readonly url?: string };
      if (url !== undefined) this.requested.push(url);
    };
  }

  static async open(): Promise<Page> {
    const directory = mkdtempSync(join(tmpdir(), 'orch-browser-'));
    const browser = spawn(BROWSER, [...FLAGS, `--user-data-dir=${directory}`, 'about:blank'], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const ended = new Promise<void>((resolve) => browser.once('close', () => resolve()));
    onTestFinished(async () => {
      browser.kill('SIGKILL');
      await ended;
      rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
    });
    const connection = await Connection.open(await debuggerOf(browser));
    const { targetId } = await connection.call('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await connection.call('Target.attachToTarget', { targetId, flatten: true });
    const page = new Page(connection, String(sessionId));
    await page.call('Network.enable');
    await page.call('Page.enable');
    return page;
  }

  call(method: string, params: object = {}): Promise<Result> {
    return this.connection.call(method, params, this.sessionId);
  }

  /** Opens an address in a window of this size and with these colours, and waits until the page is loaded. */
  async visit(url: string, { width = 1280, height = 900, colours = 'light' } = {}): Promise<void> {
    await this.call('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false });
    await this.call('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: colours }] });
    await this.call('Page.navigate', { url });
    await this.until(`location.href === ${JSON.stringify(url)} && document.readyState === 'complete'`);
  }

  /** Returns the JSON value of an expression in the page. */
  async evaluate<T>(expression: string): Promise<T> {
    const { result, exceptionDetails } = await this.call('Runtime.evaluate', { expression, returnByValue: true });
    if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails));
    return (result as { readonly value: T }).value;
  }

  /** Waits until an expression in the page is true. */
  async until(expression: string): Promise<void> {
    for (let tries = 0; tries < 800; tries += 1) {
      if (await this.evaluate<boolean>(`Boolean(${expression})`)) return;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    throw new Error(`never true in the page: ${expression}`);
  }

  async type(text: string): Promise<void> {
    await this.call('Input.insertText', { text });
  }

  async press(key: string): Promise<void> {
    const codes: Readonly<Record<string, number>> = { Enter: 13, '/': 191, ArrowDown: 40 };
    const text = key === 'Enter' ? '\r' : key.length === 1 ? key : undefined;
    const common = { key, windowsVirtualKeyCode: codes[key] ?? 0 };
    await this.call('Input.dispatchKeyEvent', { type: 'keyDown', ...common, ...(text === undefined ? {} : { text }) });
    await this.call('Input.dispatchKeyEvent', { type: 'keyUp', ...common });
  }

  /** Returns a picture of the window as PNG. */
  async screenshot(): Promise<Buffer> {
    const { data } = await this.call('Page.captureScreenshot', { format: 'png' });
    return Buffer.from(String(data), 'base64');
  }
}

/** Returns the address of the debugging protocol, which the browser prints. */
async function debuggerOf(browser: ChildProcess): Promise<string> {
  let output = '';
  return new Promise((resolve, reject) => {
    browser.once('error', reject);
    browser.once('close', () => reject(new Error(`the browser ended: ${output}`)));
    browser.stderr?.on('data', (chunk) => {
      output += chunk;
      const [, address] = /DevTools listening on (ws:\S+)/.exec(output) ?? [];
      if (address !== undefined) resolve(address);
    });
  });
}

class Connection {
  onEvent: (event: Answer) => void = () => undefined;
  private readonly waiting = new Map<number, (answer: Answer) => void>();
  private readonly socket: WebSocket;
  private lastId = 0;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on('message', (data) => {
      const answer = JSON.parse(String(data)) as Answer;
      if (answer.id === undefined) this.onEvent(answer);
      else this.waiting.get(answer.id)?.(answer);
    });
  }

  static async open(address: string): Promise<Connection> {
    const socket = new WebSocket(address);
    await new Promise((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('error', reject);
    });
    return new Connection(socket);
  }

  call(method: string, params: object, sessionId?: string): Promise<Result> {
    this.lastId += 1;
    const id = this.lastId;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, ({ result, error }) => {
        this.waiting.delete(id);
        if (error === undefined) resolve(result ?? {});
        else reject(new Error(`${method}: ${error.message}`));
      });
      this.socket.send(JSON.stringify({ id, method, params, ...(sessionId === undefined ? {} : { sessionId }) }));
    });
  }
}
