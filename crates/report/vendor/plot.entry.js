// What the report page uses of Observable Plot.
export { boxX, dot, plot, ruleX, tickX } from "@observablehq/plot";
