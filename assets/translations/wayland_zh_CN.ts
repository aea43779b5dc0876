<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
<context>
    <name>wayland</name>
    <message>
        <source>This desktop gives out no shortcuts to programs.</source>
        <translation>此桌面不向程序提供快捷键。</translation>
    </message>
    <message>
        <source>The shortcuts were declined.</source>
        <translation>快捷键请求被拒绝。</translation>
    </message>
    <message>
        <source>The part of the desktop that gives out shortcuts has ended. Start the app again.</source>
        <translation>桌面中提供快捷键的服务已停止，请重新启动本程序。</translation>
    </message>
    <message>
        <source>The desktop refused to give out shortcuts: {reason}.</source>
        <translation>桌面拒绝提供快捷键：{reason}。</translation>
    </message>
    <message>
        <source>The desktop has been asked for this shortcut; it may show a question.</source>
        <translation>已向桌面申请此快捷键，桌面可能会弹出询问。</translation>
    </message>
    <message>
        <source>The desktop has given no key to this shortcut. Choose one in its keyboard settings.</source>
        <translation>桌面尚未给此快捷键分配按键，请在桌面的键盘设置中选择。</translation>
    </message>
    <message>
        <source>The desktop has not given out this shortcut.</source>
        <translation>桌面没有提供此快捷键。</translation>
    </message>
    <message>
        <source>The desktop is asked for this shortcut when the app is started again.</source>
        <translation>重新启动本程序时会向桌面申请此快捷键。</translation>
    </message>
    <message>
        <source>This desktop decides which keys start what; change them in its keyboard settings.</source>
        <translation>按键由此桌面决定，请在桌面的键盘设置中更改。</translation>
    </message>
</context>
</TS>
