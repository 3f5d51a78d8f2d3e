// The parts of Observable Plot that the page uses: the build makes one file of them.
export { dot, lineY, plot, pointerX, ruleX, ruleY, tip } from "@observablehq/plot";
