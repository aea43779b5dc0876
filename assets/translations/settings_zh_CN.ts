<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
<context>
    <name>settings</name>
    <message>
        <source>{file} cannot be changed: {reason}. Correct the folder's rights, or add the program to the desktop's list of autostart programs.</source>
        <translation>无法修改 {file}：{reason}。请修正文件夹权限，或在桌面的自启动程序列表中添加本程序。</translation>
    </message>
    <message>
        <source>Windows does not let this program change what starts at login: {reason}. Put a shortcut into the folder shell:startup instead.</source>
        <translation>Windows 不允许本程序更改登录时启动的项目：{reason}。可改为把快捷方式放入 shell:startup 文件夹。</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>设置</translation>
    </message>
    <message>
        <source>Press the keys…</source>
        <translation>请按下组合键…</translation>
    </message>
    <message>
        <source>none</source>
        <translation>无</translation>
    </message>
    <message>
        <source>tokens</source>
        <translation>个词元</translation>
    </message>
    <message>
        <source>pt</source>
        <translation>磅</translation>
    </message>
    <message>
        <source>minutes</source>
        <translation>分钟</translation>
    </message>
    <message>
        <source>days</source>
        <translation>天</translation>
    </message>
    <message>
        <source>characters</source>
        <translation>个字符</translation>
    </message>
    <message>
        <source>on</source>
        <translation>开</translation>
    </message>
    <message>
        <source>off</source>
        <translation>关</translation>
    </message>
    <message>
        <source>empty</source>
        <translation>空</translation>
    </message>
    <message>
        <source>Choose…</source>
        <translation>选择…</translation>
    </message>
    <message>
        <source>{title}: choose a file</source>
        <translation>{title}：选择文件</translation>
    </message>
    <message>
        <source>Choose a file</source>
        <translation>选择文件</translation>
    </message>
    <message>
        <source>Chosen by this machine's memory</source>
        <translation>按本机内存自动选择</translation>
    </message>
    <message>
        <source>Use a file…</source>
        <translation>使用文件…</translation>
    </message>
    <message>
        <source>Choose a model</source>
        <translation>选择模型</translation>
    </message>
    <message>
        <source>Models (*.gguf)</source>
        <translation>模型 (*.gguf)</translation>
    </message>
    <message>
        <source>Search</source>
        <translation>搜索</translation>
    </message>
    <message>
        <source>Search the settings</source>
        <translation>搜索设置</translation>
    </message>
    <message>
        <source>Search the settings ({keys})</source>
        <translation>搜索设置（{keys}）</translation>
    </message>
    <message>
        <source>Pages</source>
        <translation>页面</translation>
    </message>
    <message>
        <source>Open the file</source>
        <translation>打开设置文件</translation>
    </message>
    <message>
        <source>No setting has this in its name or its explanation.</source>
        <translation>没有任何设置的名称或说明包含这些文字。</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>撤销</translation>
    </message>
    <message>
        <source>Take the last change back ({keys})</source>
        <translation>撤销上一次更改（{keys}）</translation>
    </message>
    <message>
        <source>Start at login</source>
        <translation>登录时启动</translation>
    </message>
    <message>
        <source>The tray icon and the hotkeys are there once you have logged in. The model loads in the background.</source>
        <translation>登录后托盘图标和快捷键即可使用，模型在后台加载。</translation>
    </message>
    <message>
        <source>There is an entry, but the system's list of autostart programs has it switched off.</source>
        <translation>已有启动项，但系统的自启动程序列表中已将其关闭。</translation>
    </message>
    <message>
        <source>Another installation is started: {program}. Switch this on to start this one instead.</source>
        <translation>目前启动的是另一处安装：{program}。打开此开关即改为启动当前安装。</translation>
    </message>
    <message>
        <source>What is started is not there any more: {program}</source>
        <translation>要启动的程序已不存在：{program}</translation>
    </message>
    <message>
        <source>not downloaded</source>
        <translation>未下载</translation>
    </message>
    <message>
        <source>Press a combination to see that it arrives; nothing is run while this page is in front.</source>
        <translation>按下组合键即可查看它是否到达；此页面在前台时不会执行任何操作。</translation>
    </message>
    <message>
        <source>In the settings of {desktop} it is "{purpose}".</source>
        <translation>在 {desktop} 的设置中，它是“{purpose}”。</translation>
    </message>
    <message>
        <source>The model is loaded anew once the answer that is being written has ended.</source>
        <translation>正在生成的回答结束后将重新加载模型。</translation>
    </message>
    <message>
        <source>The language of the windows changes when the app is started again.</source>
        <translation>重新启动本程序后界面语言才会改变。</translation>
    </message>
    <message>
        <source>✓ It has arrived.</source>
        <translation>✓ 已收到。</translation>
    </message>
    <message>
        <source>Removes every conversation and every kept answer from this computer, for good.</source>
        <translation>从本机永久删除所有对话和已保存的回答。</translation>
    </message>
    <message>
        <source>Clear…</source>
        <translation>清空…</translation>
    </message>
    <message>
        <source>Load it now</source>
        <translation>立即加载</translation>
    </message>
    <message>
        <source>Restart now</source>
        <translation>立即重启</translation>
    </message>
    <message>
        <source>Some combinations are taken.</source>
        <translation>部分组合键已被占用。</translation>
    </message>
    <message>
        <source>Back to the default: {value}</source>
        <translation>恢复默认值：{value}</translation>
    </message>
    <message>
        <source>General</source>
        <translation>常规</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Answers</source>
        <translation>回答</translation>
    </message>
    <message>
        <source>Privacy</source>
        <translation>隐私</translation>
    </message>
    <message>
        <source>Network</source>
        <translation>网络</translation>
    </message>
    <message>
        <source>Help</source>
        <translation>帮助</translation>
    </message>
    <message>
        <source>Languages</source>
        <translation>语言</translation>
    </message>
    <message>
        <source>Appearance</source>
        <translation>外观</translation>
    </message>
    <message>
        <source>Start</source>
        <translation>启动</translation>
    </message>
    <message>
        <source>On the selected text</source>
        <translation>对选中的文字</translation>
    </message>
    <message>
        <source>Windows</source>
        <translation>窗口</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>内存</translation>
    </message>
    <message>
        <source>Engine</source>
        <translation>引擎</translation>
    </message>
    <message>
        <source>Chat</source>
        <translation>聊天</translation>
    </message>
    <message>
        <source>History</source>
        <translation>历史记录</translation>
    </message>
    <message>
        <source>Clipboard</source>
        <translation>剪贴板</translation>
    </message>
    <message>
        <source>Other programs</source>
        <translation>其他程序</translation>
    </message>
    <message>
        <source>Remote engine</source>
        <translation>远程引擎</translation>
    </message>
    <message>
        <source>Gateway for other programs</source>
        <translation>供其他程序使用的网关</translation>
    </message>
    <message>
        <source>Diagnostics</source>
        <translation>诊断</translation>
    </message>
    <message>
        <source>Your settings say that nothing is read out of {program}. Copy the text, or change that under Privacy.</source>
        <translation>您的设置规定不读取 {program} 中的内容。请复制文字，或在“隐私”中更改。</translation>
    </message>
    <message>
        <source>This program is left alone</source>
        <translation>不读取此程序</translation>
    </message>
    <message>
        <source>No keys are sent to this program, as your settings say; copy the answer instead.</source>
        <translation>按您的设置，不向此程序发送按键；请改为复制回答。</translation>
    </message>
    <message>
        <source>This is all that the bundle holds: no text of yours, no names of files, no keys. It stays on this computer until you pass it on yourself.</source>
        <translation>诊断包的全部内容如下：不含您的任何文字、文件名或密钥。在您自行转交之前，它只留在本机。</translation>
    </message>
    <message>
        <source>Files of the bundle</source>
        <translation>诊断包中的文件</translation>
    </message>
    <message>
        <source>Content of the file</source>
        <translation>文件内容</translation>
    </message>
    <message>
        <source>Collecting…</source>
        <translation>正在收集…</translation>
    </message>
    <message>
        <source>Save…</source>
        <translation>保存…</translation>
    </message>
    <message>
        <source>Save the bundle</source>
        <translation>保存诊断包</translation>
    </message>
    <message>
        <source>It cannot be saved there: {reason}. Choose another folder.</source>
        <translation>无法保存到该位置：{reason}。请选择其他文件夹。</translation>
    </message>
    <message>
        <source>Saved: {file}</source>
        <translation>已保存：{file}</translation>
    </message>
    <message>
        <source>Diagnostics bundle</source>
        <translation>诊断包</translation>
    </message>
    <message>
        <source>Versions, hardware, settings without texts, states and timings, for a report of a fault. It holds no text of yours, and you see all of it before it is saved.</source>
        <translation>用于报告故障：版本、硬件、不含文字的设置、状态和耗时。其中没有您的任何文字，保存前您可以查看全部内容。</translation>
    </message>
    <message>
        <source>Look at it…</source>
        <translation>查看…</translation>
    </message>
    <message>
        <source>Select a text in any program and press a hotkey: a language model on this computer summarizes, translates or rewrites it. Nothing leaves the machine.</source>
        <translation>在任何程序中选中文字并按下快捷键，本机上的语言模型就会总结、翻译或改写它。任何内容都不会离开本机。</translation>
    </message>
    <message>
        <source>Texts and answers are kept on this computer; Settings › Privacy switches that off.</source>
        <translation>文字和回答保存在本机；可在“设置 › 隐私”中关闭。</translation>
    </message>
    <message>
        <source>The answers come from a model that is downloaded once. The first of the list suits this machine's memory.</source>
        <translation>回答由一个只需下载一次的模型生成。列表中的第一个适合本机的内存。</translation>
    </message>
    <message>
        <source>about {size}</source>
        <translation>约 {size}</translation>
    </message>
    <message>
        <source>licence {licence}</source>
        <translation>许可证 {licence}</translation>
    </message>
    <message>
        <source>Download ({size})</source>
        <translation>下载（{size}）</translation>
    </message>
    <message>
        <source>✓ It is on this computer.</source>
        <translation>✓ 已在本机上。</translation>
    </message>
    <message>
        <source>Choose other combinations…</source>
        <translation>更换组合键…</translation>
    </message>
    <message>
        <source>A text to try the hotkeys on</source>
        <translation>用来试用快捷键的文字</translation>
    </message>
    <message>
        <source>No hotkey works here; the tray menu runs the actions as well.</source>
        <translation>这里没有可用的快捷键；也可以从托盘菜单执行操作。</translation>
    </message>
    <message>
        <source>Try it: the text below is selected. Press {hotkey}.</source>
        <translation>试一试：下面的文字已选中，请按 {hotkey}。</translation>
    </message>
    <message>
        <source>Welcome</source>
        <translation>欢迎</translation>
    </message>
    <message>
        <source>A model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Skip</source>
        <translation>跳过</translation>
    </message>
    <message>
        <source>Back</source>
        <translation>上一步</translation>
    </message>
    <message>
        <source>Next</source>
        <translation>下一步</translation>
    </message>
    <message>
        <source>Done</source>
        <translation>完成</translation>
    </message>
    <message>
        <source>{step} of {steps}</source>
        <translation>{step} / {steps}</translation>
    </message>
    <message>
        <source>This file is used: {file}</source>
        <translation>使用此文件：{file}</translation>
    </message>
    <message>
        <source>Address, model and key in one place. The key goes into the system's keyring, not into the file.</source>
        <translation>在一处填写地址、模型和密钥。密钥存入系统密钥环，绝不写入文件。</translation>
    </message>
    <message>
        <source>Set the server up</source>
        <translation>配置服务器</translation>
    </message>
    <message>
        <source>The system does not tell which one.</source>
        <translation>系统未告知是哪个程序。</translation>
    </message>
    <message>
        <source>{title}: {before} → {after}</source>
        <translation>{title}：{before} → {after}</translation>
    </message>
    <message>
        <source>User guide</source>
        <translation>用户指南</translation>
    </message>
    <message>
        <source>Go back</source>
        <translation>返回</translation>
    </message>
    <message>
        <source>About DeskInfer</source>
        <translation>关于 DeskInfer</translation>
    </message>
    <message>
        <source>Version {version}</source>
        <translation>版本 {version}</translation>
    </message>
    <message>
        <source>The user guide shows in pictures how everything works.</source>
        <translation>用户指南图文并茂地介绍全部功能。</translation>
    </message>
    <message>
        <source>Find</source>
        <translation>查找</translation>
    </message>
    <message>
        <source>Find in the user guide</source>
        <translation>在用户指南中查找</translation>
    </message>
    <message>
        <source>Find in the user guide ({keys})</source>
        <translation>在用户指南中查找（{keys}）</translation>
    </message>
    <message>
        <source>Previous place</source>
        <translation>上一处</translation>
    </message>
    <message>
        <source>Next place</source>
        <translation>下一处</translation>
    </message>
    <message>
        <source>{number} of {count}</source>
        <translation>第 {number} 处，共 {count} 处</translation>
    </message>
    <message>
        <source>not found</source>
        <translation>未找到</translation>
    </message>
    <message>
        <source>{choice} ({found})</source>
        <translation>{choice}（{found}）</translation>
    </message>
</context>
</TS>
