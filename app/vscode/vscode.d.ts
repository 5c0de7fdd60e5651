declare module "vscode";
