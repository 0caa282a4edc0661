// Draws the panels of a dashboard with Grafana's components. `window.dashboard` has its JSON with the data of each panel.
import React from 'react';
import plotStyles from 'uplot/dist/uPlot.min.css';
import { createRoot } from 'react-dom/client';
import { createTheme, dateTime, FieldType, getDisplayProcessor, ThemeContext } from '@grafana/data';
import { BigValue, GlobalStyles, PanelChrome, TimeSeries } from '@grafana/ui';

const WIDTH = 1240, COLUMN = WIDTH / 24, ROW = 30, GAP = 8, ROW_GAP = 8;
const theme = createTheme({ colors: { mode: 'light' } });

// The settings that Grafana gives a panel without its own.
const LINES = {
  drawStyle: 'line', lineWidth: 1, fillOpacity: 0, showPoints: 'auto', axisPlacement: 'auto',
  scaleDistribution: { type: 'linear' }, hideFrom: {},
};

const numbers = ({ type, fieldConfig: { defaults: { unit, thresholds } } }, { name, values }, seriesIndex) => {
  const steps = thresholds?.steps.map((step) => ({ ...step, value: step.value ?? -Infinity }));
  const config = {
    displayName: name, unit, custom: LINES, thresholds: steps && { ...thresholds, steps },
    color: { mode: type === 'stat' ? 'thresholds' : 'palette-classic' },
  };
  const field = { name, type: FieldType.number, config, values, state: { seriesIndex, displayName: name } };
  return { ...field, display: getDisplayProcessor({ field, theme }) };
};

const Stat = ({ panel, width, height }) => {
  const fields = panel.series.map((series, index) => numbers(panel, series, index));
  return fields.map((field) => {
    const value = { ...field.display(field.values.at(-1)), title: field.name };
    return <BigValue key={field.name} value={value} theme={theme} width={width / fields.length} height={height}
      colorMode="value" graphMode="none" justifyMode="auto" textMode={panel.options?.textMode ?? (fields.length > 1 ? 'value_and_name' : 'value')} />;
  });
};

const Lines = ({ panel, width, height }) => {
  const frames = panel.series.map((series, index) => {
    const time = { name: 'Time', type: FieldType.time, config: {}, values: series.times };
    return { refId: `${index}`, length: series.times.length, fields: [time, numbers(panel, series, index)] };
  });
  const { from, to } = window.dashboard;
  const range = { from: dateTime(from), to: dateTime(to), raw: { from: dateTime(from), to: dateTime(to) } };
  return <TimeSeries frames={frames} timeRange={range} timeZone="utc" width={width} height={height}
    legend={{ displayMode: 'list', placement: 'bottom', showLegend: true, calcs: [] }} />;
};

const Panel = ({ panel }) => {
  const { x, y, w, h } = panel.gridPos;
  const width = w * COLUMN - GAP, height = h * (ROW + ROW_GAP) - ROW_GAP;
  const Body = panel.type === 'stat' ? Stat : Lines;
  return <div style={{ position: 'absolute', left: x * COLUMN + GAP / 2, top: y * (ROW + ROW_GAP), width, height }}>
    <PanelChrome title={panel.title} width={width} height={height}>
      {(innerWidth, innerHeight) => <Body panel={panel} width={innerWidth} height={innerHeight} />}
    </PanelChrome>
  </div>;
};

const rows = Math.max(...window.dashboard.panels.map(({ gridPos }) => gridPos.y + gridPos.h));
const Page = () => <ThemeContext.Provider value={theme}>
  <GlobalStyles /><style>{plotStyles}</style>
  <div style={{ position: 'relative', margin: 8, width: WIDTH, height: rows * (ROW + ROW_GAP) }}>
    {window.dashboard.panels.map((panel) => <Panel key={panel.id} panel={panel} />)}
  </div>
</ThemeContext.Provider>;

createRoot(document.getElementById('page')).render(<Page />);
