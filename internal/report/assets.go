package report

import _ "embed"

// What the page is made of. uPlot draws the plots: it is the npm package uplot,
// version 1.6.32, unchanged (dist/uPlot.iife.min.js, dist/uPlot.min.css), and its
// licence (MIT) is part of every page. The rest is our own.
var (
	//go:embed assets/uPlot.iife.min.js
	uPlotScript string
	//go:embed assets/uPlot.min.css
	uPlotStyle string
	//go:embed assets/LICENSE
	uPlotLicence string
	//go:embed assets/page.css
	pageStyle string
	//go:embed assets/page.js
	pageScript string
	//go:embed assets/body.html
	bodyTemplate string
)
