// Uses the page in a browser: CHROMIUM names one, else it is that of `npx playwright-core install chromium`.
import { chromium } from "playwright-core";

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM });
const page = await browser.newPage();
await page.goto("http://127.0.0.1:8788");
await page.getByLabel("Message").fill("compute 6*7");
await page.keyboard.press("Enter");
await page.getByRole("button", { name: "Approve" }).click();
await page.getByText("compute gave 42.").waitFor();
console.log(await page.getByRole("listitem").allTextContents());
await browser.close();
